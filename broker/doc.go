// Package broker is a Kafka broker as a library: New, Start, Addr, Shutdown. Several may live in one process; there are no globals. It is the
// only place where the protocol front end (wire) and the store (log) meet.
//
// Life of a request. wire calls Broker.Handle on the connection's goroutine; the table in apis.go finds the handler of the key; one file per
// API key family holds it. A handler that must wait (produce for its sync, fetch for data) registers with the logs it waits for and returns a
// wire.Pending; the log's watcher wakes the connection. Nothing else of ours runs between socket and log.
//
// Order of start: settings, directory lock, metadata tree, controller, logs, listeners; a client finds either a refused connection or a
// broker that knows all its topics. Order of stop: stop accepting, answer what waits, close connections, flush and close logs, checkpoints, clean marker, tree,
// lock. With ZooKeeper the tree comes before the directory, whose owner it names, nothing is led before a controller says so, and the broker registers when it
// listens; at the stop the steward ends after the connections and before the coordinators.
//
// With ZooKeeper the metadata is read, compared and followed by one goroutine of the steward (steward.go); what it finds is carried out under Broker.admin.
// Broker.steward is nil on a tree of the broker's own, and those of its methods that others call do nothing then.
//
// Requests that change topics or configurations do so on their connection's goroutine and answer when the change is durable and in force.
//
// Locks, outermost first: Broker.admin (topic and configuration changes, held over their I/O; never taken on the produce and fetch paths) >
// producerIDs.mu (held while a block of ids is taken) > Controller.mu (package controller) > catalog.mu (maps of topics; leaf) > topic.mu
// (configuration overrides; leaf) > Log.mu (package log). None is held over a sync on the hot path, a socket write or a wait.
//
// listeners.mu, clientMetrics.mu, groupConfigs.mu, steward.mu and Announcer.mu (package peers) are leaves below Broker.admin. Announcer.Close waits for its
// goroutines with Broker.admin held: what they call (steward.answered, steward.stopped) must not take that.
//
// Locks of the group coordinator, outermost first: stateTopic.starting (while __consumer_offsets is made; Broker.admin is taken under it) > Broker.admin >
// stateTopic.mu (which partitions are led here; only catalog.mu and Log.mu are taken under it). Apart from these: groupSlot.mu, one for each group (held
// over an append, never over its sync) > offsetsPartition.openMu (held over the append of a marker) > offsetsPartition.mu (the map of groups),
// stateLog.flightMu, stateLoop.readyMu, timers.mu, Log.mu (leaves). No group's lock is taken under another's.
//
// Locks of the transaction coordinator: stateTopic's as above; txnSlot.mu, one for each transactional id (held over appends of its batches,
// markers and records, never over a sync) > verifications.mu, one for each partition (held over the append of a marker, and of what another coordinator was
// asked about) > groupSlot.mu and what is below that; txnPartition.mu (leaf). No id's lock is taken under another's,
// nor under a group's.
//
// Goroutines: the ticker, the retention (retention.go), the cleaner's (cleaner.go), the group coordinator's three (timers and completed writes; loading and unloading; expiry and compaction), the transaction coordinator's two (without the third), the
// steward's with one for each of its watches and one of the Announcer for each other broker, one for each broker that transaction markers go to, and those of
// wire.Server and of logdir.Dir; all ended and awaited by Shutdown.
package broker
