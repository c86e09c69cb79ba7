package report

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gregor/compat/bench/stats"
)

// Results hold the figures of all rounds: by metric key, by broker.
type Results map[string]map[string][]float64

// Add records the figure of one round.
func (r Results) Add(key, broker string, value float64) {
	if r[key] == nil {
		r[key] = map[string][]float64{}
	}
	r[key][broker] = append(r[key][broker], value)
}

// median is NaN when there is no figure.
func (r Results) median(key, broker string) float64 { return stats.Median(r[key][broker]) }

// Table is the header and the rows of all metrics that have a figure. Brokers are the columns; the first is the one
// that the ratios and goals are about when it is gregor.
func Table(r Results, brokers []string) [][]string {
	header := append([]string{"", "unit"}, brokers...)
	against := compared(brokers)
	for _, b := range against {
		header = append(header, "÷ "+b)
	}
	rows := [][]string{append(header, "goal", "")}
	for _, m := range Metrics() {
		if len(r[m.Key]) == 0 {
			continue
		}
		row := []string{m.Label, m.Unit}
		for _, b := range brokers {
			row = append(row, format(r.median(m.Key, b)))
		}
		for _, b := range against {
			row = append(row, format(r.median(m.Key, Gregor)/r.median(m.Key, b)))
		}
		rows = append(rows, append(row, verdict(r, m)...))
	}
	return rows
}

// compared are the brokers that gregor is divided by.
func compared(brokers []string) []string {
	var out []string
	has := false
	for _, b := range brokers {
		if b == Gregor {
			has = true
		} else {
			out = append(out, b)
		}
	}
	if !has {
		return nil
	}
	return out
}

func verdict(r Results, m Metric) []string {
	if m.Goal == nil {
		return []string{"", ""}
	}
	v := r.median(m.Key, Gregor)
	if !m.Goal.Absolute {
		against := m.Goal.Against
		if against == "" {
			against = KafkaDefault
		}
		v /= r.median(m.Key, against)
	}
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return []string{m.Goal.String(), "?"}
	case m.Goal.met(v):
		return []string{m.Goal.String(), "met"}
	default:
		return []string{m.Goal.String(), "missed"}
	}
}

// format gives a figure three significant digits, and thousands as they are.
func format(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case a >= 100 || a == math.Trunc(a):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
}

// Text lays the rows out for a terminal.
func Text(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if left := i < 2 || i >= len(row)-2; left {
				line.WriteString(cell + pad + "  ")
			} else {
				line.WriteString(pad + cell + "  ")
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// Markdown is the same as a Markdown table.
func Markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---|---|" + strings.Repeat("--:|", len(row)-4) + "---|---|\n")
		}
	}
	return b.String()
}
