// Package report knows what the figures are called, which of them have a goal, and how they are printed. It is pure.
package report
