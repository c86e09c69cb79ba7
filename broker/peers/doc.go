// Package peers is how a broker of a ZooKeeper cluster talks to the others: connections and requests (Dialer, Conn, Pool), and, for the
// controller, what each other broker has to hear and has not answered yet (Announcer). Behaviour is that of Kafka 3.9's ControllerChannelManager
// and ControllerBrokerRequestBatch. PLAINTEXT only.
//
// # Announcer
//
// It knows the cluster's topics (Config.Topics, then Announce and Update) and the live brokers (SetBrokers). For every other live broker it keeps a
// queue of steps; a step is at most one LeaderAndIsr (two when some topics have ids and some have none), one UpdateMetadata and one StopReplica (two
// before version 3), sent in this order. A change is merged into the last step of the queue that was not taken yet, the newest state of a partition counting,
// unless order forbids it: a partition that is to be stopped there and comes back, or a topic that comes back with another id, begins another step.
//
//   - SetBrokers: a broker that is new, or has another epoch, hears first all topics by UpdateMetadata, then the partitions that it has replicas of by
//     LeaderAndIsr; the others hear who lives, with the partitions that it has replicas of. A broker that left is forgotten with its queue.
//   - Announce: LeaderAndIsr to the live replicas, isNew to those that were not replicas before, and UpdateMetadata to all.
//   - Update: UpdateMetadata to all, for changes that replicas know by themselves (in-sync replicas).
//   - Stop: StopReplica for some brokers, for replicas that a reassignment took away.
//   - Delete: UpdateMetadata with leader -2 to all, StopReplica with deletion and leader epoch -2 to the live replicas.
//   - Forget: the topic is gone; nothing is sent.
//
// A partition without leadership (leader epoch below 0) is not sent, one without leader (-1) is. LeaderAndIsr has request type 0, as Kafka's
// ZooKeeper controllers have it; brokers look at it only when the controller is one of KRaft.
//
// Promise. What was handed in reaches each broker in order, at least once: a request is sent again after 100 ms, on another connection, until the
// broker answers, leaves, or Close. The answer's errors are the business of Config.Answered; nothing is sent again because of them, as in Kafka.
// Changes must be handed in in the order in which they were written to ZooKeeper.
//
// # Requests
//
// Conn.Request takes the highest version that both sides know (ApiVersions), within Versions and Dialer.Highest. Every message is kmsg's, except for two that kmsg
// has wrong: StopReplica 4 (StopReplicaRequest here) and the header of ControlledShutdown 0. An answer's size is limited before it is read, and memory grows
// with the bytes that came. A connection that the broker ended while it was idle is found out before it is used again.
//
// Locks. Announcer.mu and Pool.mu are leaves, held for map operations and never over I/O or a callback. A Conn lets one request through at a time.
//
// Goroutines. One for each other live broker, started by SetBrokers, ended by the broker's leaving or Close, which waits for all of them. Conn and
// Pool have none.
package peers
