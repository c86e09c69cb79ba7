// Package hostile speaks to the broker as no client should: garbage, frames that lie about their length, other
// protocols, arrays without end, readers that do not read, thousands of idle connections. The bad connection must end,
// everybody else must be served meanwhile, and memory must stay bounded.
package hostile
