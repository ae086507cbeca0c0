# `cpack`, or `cmake --build TREE --target package`: ringscope_VERSION_amd64.deb and ringscope-VERSION-Linux-x86_64.tar.gz. With
# SOURCE_DATE_EPOCH set the same files give the same bytes; release/package.sh does that, with the libraries linked statically.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME ringscope)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "Ringscope")
set(CPACK_PACKAGE_CONTACT "Ringscope maintainers <ringscope@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "flight recorder for NCCL and the analyzer that reads it")
set(CPACK_PACKAGE_FILE_NAME ringscope-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
# Not SHLIBDEPS: with it CPack has ldconfig run for libraries that are not on its path.
configure_file(${CMAKE_SOURCE_DIR}/cmake/package_depends.cmake.in ${CMAKE_BINARY_DIR}/packaging/package_depends.cmake @ONLY)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_BINARY_DIR}/packaging/package_depends.cmake)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Records what each rank's communicators are doing, in a small memory-mapped
file that survives crashes, and says after a hang which rank stopped the job,
which ranks only waited, how sure that is and what to look at next.")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
