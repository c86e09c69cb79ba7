// Command gregor is the broker as a program. It turns flags, environment and a properties file into settings, runs package broker with them, and
// turns signals into a clean stop. It decides nothing else.
package main
