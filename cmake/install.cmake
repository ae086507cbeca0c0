# What `cmake --install` puts where, below any prefix: nothing knows the prefix, `ringscope run` finds the library beside its own
# program (../lib/ringscope). Packages (cmake/package.cmake) hold the same files.
include(GNUInstallDirs)
set(RINGSCOPE_LIBRARY_FOLDER "" CACHE PATH
  "Folder with libringscope.so and libringscope-newer.so to install in place of those built here: release/build.sh makes them for old systems")
# One folder on every system: `ringscope run` looks there.
set(library_directory lib/ringscope)
set(doc_directory ${CMAKE_INSTALL_DATAROOTDIR}/doc/ringscope)

install(TARGETS ringscope_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(RINGSCOPE_LIBRARY_FOLDER)
  install(FILES ${RINGSCOPE_LIBRARY_FOLDER}/libringscope.so ${RINGSCOPE_LIBRARY_FOLDER}/libringscope-newer.so
    DESTINATION ${library_directory})
  install(CODE "if(CMAKE_INSTALL_DO_STRIP)
    foreach(name libringscope libringscope-newer)
      execute_process(COMMAND \"${CMAKE_STRIP}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${library_directory}/\${name}.so\"
        COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
  endif()")
else()
  install(TARGETS libringscope libringscope_newer LIBRARY DESTINATION ${library_directory} NAMELINK_SKIP
    PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endif()
# The name by which NCCL looks for a profiler called "ringscope".
install(CODE "file(CREATE_LINK libringscope.so
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${library_directory}/libnccl-profiler-ringscope.so\" SYMBOLIC)")

# Manual pages: the program prints them itself, from what --help is made of.
set(man_pages ringscope)
file(GLOB command_files ${CMAKE_SOURCE_DIR}/tools/*.cc)
foreach(file ${command_files})
  file(STRINGS ${file} defines REGEX "^const Command k[A-Z]")
  if(defines)
    get_filename_component(name ${file} NAME_WE)
    list(APPEND man_pages ringscope-${name})
  endif()
endforeach()
set(man_files "")
foreach(page ${man_pages})
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man/${page}.1.gz
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
    COMMAND ringscope_tool --man=${page} > ${CMAKE_BINARY_DIR}/man/${page}.1
    COMMAND gzip -9 -n -f -k ${CMAKE_BINARY_DIR}/man/${page}.1
    DEPENDS ringscope_tool VERBATIM)
  list(APPEND man_files ${CMAKE_BINARY_DIR}/man/${page}.1.gz)
endforeach()
add_custom_target(man_pages ALL DEPENDS ${man_files})
install(FILES ${man_files} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

file(GLOB pages ${CMAKE_SOURCE_DIR}/docs/*.md ${CMAKE_SOURCE_DIR}/docs/*.json)
install(FILES ${pages} DESTINATION ${doc_directory}/docs)
install(FILES ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${doc_directory})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${doc_directory})
file(GLOB scripts ${CMAKE_SOURCE_DIR}/examples/launch/*.sh)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/launch DESTINATION ${doc_directory}/examples PATTERN *.sh EXCLUDE)
install(PROGRAMS ${scripts} DESTINATION ${doc_directory}/examples/launch)
install(FILES ${CMAKE_SOURCE_DIR}/examples/train.cc DESTINATION ${doc_directory}/examples)
# A job to try the analyzer on: ringscope diagnose .../examples/hang
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tests/compat/v2/dp_rank_absent/ DESTINATION ${doc_directory}/examples/hang
  PATTERN expected.json EXCLUDE)
foreach(text copyright changelog.gz)
  install(FILES ${CMAKE_BINARY_DIR}/packaging/${text} DESTINATION ${doc_directory})
endforeach()
configure_file(${CMAKE_SOURCE_DIR}/cmake/copyright.in ${CMAKE_BINARY_DIR}/packaging/copyright @ONLY)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/packaging/changelog.gz
  COMMAND gzip -9 -n -c ${CMAKE_SOURCE_DIR}/CHANGELOG.md > ${CMAKE_BINARY_DIR}/packaging/changelog.gz
  DEPENDS ${CMAKE_SOURCE_DIR}/CHANGELOG.md VERBATIM)
add_custom_target(changelog ALL DEPENDS ${CMAKE_BINARY_DIR}/packaging/changelog.gz)
