// Small shapes of the drawings. Colours come from classes (assets/report.css), so that light, dark and print agree.
#ifndef RINGSCOPE_ANALYZER_REPORT_HTML_SVG_H_
#define RINGSCOPE_ANALYZER_REPORT_HTML_SVG_H_

#include <cmath>
#include <string>
#include <string_view>

#include "analyzer/report/html/writer.h"

namespace ringscope::report::html {

struct Point {
  double x = 0, y = 0;
};
inline Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
inline Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
inline Point operator*(Point a, double k) { return {a.x * k, a.y * k}; }
inline double Length(Point a) { return std::hypot(a.x, a.y); }

// Text in the middle of `at`; `classes` are of the program.
inline void SvgText(Point at, std::string_view classes, std::string_view text, Writer* out) {
  *out << "<text x=\"" << at.x << "\" y=\"" << at.y << "\" class=\"" << classes << "\">" << text << "</text>";
}

// A line with a head, from `a` to `b`, `gap` short of both; bent to the left by `bend`.
inline void SvgArrow(Point a, Point b, double gap_a, double gap_b, double bend, std::string_view classes, Writer* out) {
  const Point d = b - a;
  const double length = Length(d);
  if (length <= gap_a + gap_b) return;
  const Point u = d * (1 / length), normal = {u.y, -u.x};
  const Point middle = (a + b) * 0.5 + normal * (2 * bend);
  const Point ua = bend == 0 ? u : (middle - a) * (1 / Length(middle - a));
  const Point ub = bend == 0 ? u : (b - middle) * (1 / Length(b - middle));
  const Point from = a + ua * gap_a, to = b - ub * gap_b, side = {ub.y, -ub.x};
  const Point neck = to - ub * 9;
  *out << "<path class=\"" << classes << "\" d=\"M" << from.x << " " << from.y << "Q" << middle.x << " " << middle.y << " "
       << neck.x << " " << neck.y << "\"/><path class=\"head " << classes << "\" d=\"M" << to.x << " " << to.y << "L"
       << (neck + side * 4.5).x << " " << (neck + side * 4.5).y << "L" << (neck - side * 4.5).x << " " << (neck - side * 4.5).y
       << "Z\"/>";
}

// A cross over a broken edge.
inline void SvgCross(Point at, Writer* out) {
  *out << "<circle class=\"crossbed\" cx=\"" << at.x << "\" cy=\"" << at.y << "\" r=\"11\"/><path class=\"cross\" d=\"M"
       << at.x - 6 << " " << at.y - 6 << "L" << at.x + 6 << " " << at.y + 6 << "M" << at.x + 6 << " " << at.y - 6 << "L"
       << at.x - 6 << " " << at.y + 6 << "\"/>";
}

}  // namespace ringscope::report::html

#endif  // RINGSCOPE_ANALYZER_REPORT_HTML_SVG_H_
