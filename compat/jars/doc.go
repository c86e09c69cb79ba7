// Package jars brings Java libraries from Maven into the cache folder once, compiles the small programs under java/
// against them, and runs classes. It needs java, javac and mvn on the PATH and says so when one is missing.
//
// Every function may be called from several test processes at the same time: one fetches, the others wait.
package jars
