// Package tools runs scripts of Kafka's command line tools, those of 2.8.2 and 4.4.0, against the broker and compares what they print, line by line.
//
// A script (testdata/NAME.txt) has a fresh broker for each version of the tools. Lines:
//
//	# a comment
//	$ topics --create --topic a       runs kafka-topics with --bootstrap-server
//	$ [4.4] features describe         only with tools of that version
//	$ topics --list | grep a          keeps the lines with that text
//	$ produce a 0 5                   steps of our own: 5 records, one offset, a file in {tmp}
//	$ commit group a 0 3
//	$ write plan.json {"version":1}
//	Created topic a.                  what must be printed, in any order
//	[2.8 gregor] …                    only by tools of that version and of this broker
//
// Words in brackets are 2.8 or 4.4 for the tools and gregor, kafka, kafka-2, kafka-3 or kafka-4 for the broker; all must hold. Addresses, folders, ids and the like are
// {addr}, {tmp}, {dir}, {uuid} and {n}.
//
// With -against 4.4.0 (or 3.9.1, 2.8.2) the scripts run on that Apache Kafka, whose differences are what fails; with -write too what it prints replaces what
// the scripts have for all brokers; -write alone marks what this broker prints otherwise. A difference that stays needs a comment that says why.
package tools
