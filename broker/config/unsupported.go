package config

import "strings"

// What happens instead of what a key of Kafka asks for.
const (
	noZooKeeper = "the client of ZooKeeper here has no such setting"
	noQuorum    = "no controller quorum is used: topics and settings are kept in the data directory"
	noTLS       = "TLS is not built yet: listeners are PLAINTEXT"
	noSASL      = "authentication is not built yet: every client is let in"
	noACL       = "access control is not built yet: everyone may do everything"
	noQuotas    = "quotas are those that tools set for users, clients and addresses, measured over quota.window.num samples"
	noShare     = "share groups are not built yet"
	noStreams   = "streams groups are not built yet"
	noThreads   = "there are no thread pools or purgatories to size"
	noSockets   = "the operating system sizes backlogs"
	noMetrics   = "metrics are not built yet"
	oldAddress  = "set listeners and advertised.listeners instead"
	perTopic    = "set the topic's own key instead"
	noPlugins   = "Java plugins cannot be loaded"
	noUse       = "it has no use here"
)

// unsupported returns what happens instead for each of Kafka's broker keys, from 0.8 to 4.4, that has no effect here.
func unsupported() map[string]string {
	all := map[string]string{}
	for _, g := range []struct{ text, names string }{
		{noReplicas, keysNoReplicas},
		{noZooKeeper, keysNoZooKeeper},
		{noQuorum, keysNoQuorum},
		{noTLS, keysNoTLS},
		{noSASL, keysNoSASL},
		{noACL, keysNoACL},
		{noQuotas, keysNoQuotas},
		{noShare, keysNoShare},
		{noStreams, keysNoStreams},
		{noGroups, keysNoGroups},
		{noTxns, keysNoTxns},
		{notTiered, keysNotTiered},
		{noThreads, keysNoThreads},
		{noSockets, keysNoSockets},
		{noMetrics, keysNoMetrics},
		{oldAddress, keysOldAddress},
		{perTopic, keysPerTopic},
		{noPlugins, keysNoPlugins},
		{noUse, keysNoUse},
	} {
		for name := range strings.FieldsSeq(g.names) {
			all[name] = g.text
		}
	}
	return all
}

// unsupportedPrefix is for keys whose names Kafka composes.
func unsupportedPrefix(name string) (text string, ok bool) {
	switch {
	case strings.HasPrefix(name, "listener.name."):
		return "settings of one listener are not built yet: all listeners are PLAINTEXT", true
	case strings.HasPrefix(name, "rsm.config."), strings.HasPrefix(name, "rlmm.config."):
		return notTiered, true
	case strings.HasPrefix(name, "config.providers."):
		return noPlugins, true
	}
	return "", false
}

// Names are separated by white space.
const (
	keysNoReplicas = `
auto.leader.rebalance.enable broker.id.generation.enable control.plane.listener.name controlled.shutdown.enable
controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms controller.message.queue.size controller.socket.timeout.ms
eligible.leader.replicas.enable follower.fetch.last.tiered.offset.enable inter.broker.listener.name
leader.imbalance.check.interval.seconds leader.imbalance.per.broker.percentage num.replica.alter.log.dirs.threads num.replica.fetchers
replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
replica.lag.max.messages replica.selector.class replica.socket.receive.buffer.bytes replica.socket.timeout.ms request.timeout.ms
reserved.broker.max.id security.inter.broker.protocol unclean.leader.election.interval.ms
`
	keysNoZooKeeper = `
zookeeper.clientCnxnSocket zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable zookeeper.sync.time.ms
`
	keysNoQuorum = `
broker.heartbeat.interval.ms broker.session.timeout.ms controller.listener.names controller.performance.always.log.threshold.ms
controller.performance.sample.period.ms controller.quorum.append.linger.ms controller.quorum.auto.join.enable
controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters early.start.listeners
initial.broker.registration.timeout.ms internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
internal.metadata.max.batch.size.in.bytes metadata.log.dir metadata.log.max.record.bytes.between.snapshots
metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.min.bytes metadata.log.segment.ms
metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms process.roles server.max.startup.time.ms
`
	keysNoTLS = `
password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length password.encoder.keyfactory.algorithm
password.encoder.old.secret password.encoder.secret security.providers ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites
ssl.client.auth ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password
ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
ssl.principal.mapping.rules ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
ssl.truststore.certificates ssl.truststore.location ssl.truststore.password ssl.truststore.type
`
	keysNoSASL = `
connection.failed.authentication.delay.ms connections.max.reauth.ms delegation.token.expiry.check.interval.ms
delegation.token.expiry.time.ms delegation.token.master.key delegation.token.max.lifetime.ms delegation.token.secret.key
principal.builder.class sasl.client.callback.handler.class sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms
sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol
sasl.mechanism.inter.broker.protocol sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class
sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url sasl.server.callback.handler.class sasl.server.max.receive.size
`
	keysNoACL = `
allow.everyone.if.no.acl.found super.users
`
	keysNoQuotas = `
alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds client.quota.callback.class
controller.quota.window.num controller.quota.window.size.seconds max.connection.creation.rate max.connections.per.ip.overrides
quota.consumer.default quota.producer.default replication.quota.window.num
replication.quota.window.size.seconds
`
	keysNoShare = `
errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.topic.name.prefix group.share.assignment.interval.ms
group.share.assignor.offload.enable group.share.assignors group.share.delivery.count.limit group.share.dlq.manager.class.name
group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
group.share.max.delivery.count.limit group.share.max.groups group.share.max.heartbeat.interval.ms
group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms
group.share.max.share.sessions group.share.max.size group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
group.share.min.session.timeout.ms group.share.partition.max.record.locks group.share.persister.class.name
group.share.record.lock.duration.ms group.share.session.timeout.ms share.coordinator.append.linger.ms
share.coordinator.cached.buffer.max.bytes share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes share.coordinator.threads
share.coordinator.write.timeout.ms share.fetch.purgatory.purge.interval.requests
`
	keysNoStreams = `
group.streams.acceptable.recovery.lag group.streams.assignment.interval.ms group.streams.assignor.offload.enable group.streams.assignors
group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size group.streams.max.standby.replicas
group.streams.max.warmup.replicas group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
group.streams.min.session.timeout.ms group.streams.min.task.offset.interval.ms group.streams.num.standby.replicas
group.streams.num.warmup.replicas group.streams.rack.aware.assignment.tags group.streams.session.timeout.ms
group.streams.task.offset.interval.ms group.streams.topology.description.plugin.class
`
	keysNoGroups = `
dual.commit.enabled group.consumer.assignment.interval.ms group.consumer.assignor.offload.enable group.consumer.assignors
group.consumer.heartbeat.interval.ms group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
group.consumer.max.session.timeout.ms group.consumer.max.size group.consumer.migration.policy group.consumer.min.assignment.interval.ms
group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms group.consumer.regex.refresh.interval.ms
group.consumer.session.timeout.ms group.coordinator.append.linger.ms group.coordinator.background.threads
group.coordinator.cached.buffer.max.bytes group.coordinator.rebalance.protocols group.coordinator.threads
offsets.commit.required.acks offsets.load.buffer.size offsets.storage
`
	keysNoTxns = `
add.partitions.to.txn.retry.backoff.ms transaction.state.log.load.buffer.size
`
	keysNotTiered = `
remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks
remote.log.reader.threads remote.log.storage.manager.class.name remote.log.storage.manager.class.path
remote.log.storage.manager.impl.prefix remote.log.storage.system.enable
`
	keysNoThreads = `
background.threads delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests num.io.threads
num.network.threads producer.purgatory.purge.interval.requests queued.max.requests
`
	keysNoSockets = `
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms socket.listen.backlog.size
`
	keysNoMetrics = `
auto.include.jmx.reporter kafka.csv.metrics.dir kafka.csv.metrics.reporter.enabled kafka.metrics.polling.interval.secs
kafka.metrics.reporters metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms telemetry.max.bytes
`
	keysOldAddress = `
advertised.host.name advertised.port host.name port
`
	keysPerTopic = `
log.flush.intervals.ms.per.topic log.retention.bytes.per.topic log.retention.hours.per.topic log.roll.hours.per.topic
log.segment.bytes.per.topic
`
	keysNoPlugins = `
alter.config.policy.class.name config.providers create.topic.policy.class.name
`
	keysNoUse = `
cordoned.log.dirs log.cleanup.interval.mins log.delete.delay.ms log.dir.failure.timeout.ms log.initial.task.delay.ms
max.request.partition.size.limit unstable.api.versions.enable unstable.feature.versions.enable
`
)
