// Package suites runs test suites of others against the broker: those of franz-go, kafka-go and watermill, from the module proxy. What is left out has
// its reason beside it, and what skips itself is named; a test that skips itself without being named fails.
package suites
