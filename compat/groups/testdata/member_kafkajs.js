// One member of a group with kafkajs; arguments and output are those of java/GroupMember.java.
const { Kafka, logLevel } = require('kafkajs');

const [broker, groupId, topic] = process.argv.slice(2);
const say = (...words) => process.stdout.write(words.join(' ') + '\n');

const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 100 } });
const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 10000, maxWaitTimeInMs: 200 });

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => say('assigned', (payload.memberAssignment[topic] || []).join(',')));
consumer.on(consumer.events.REBALANCING, () => say('revoked'));
consumer.on(consumer.events.CRASH, ({ payload }) => say('failed', payload.error.message));

async function batch({ batch, resolveOffset, heartbeat }) {
  for (const m of batch.messages) {
    say('record', batch.partition, m.offset, m.value.toString());
    resolveOffset(m.offset);
  }
  const next = (BigInt(batch.messages[batch.messages.length - 1].offset) + 1n).toString();
  try {
    await consumer.commitOffsets([{ topic, partition: batch.partition, offset: next }]);
    say('committed', batch.partition, next);
  } catch (e) {
    say('failed', e.message);
    throw e;
  }
  await heartbeat();
}

async function main() {
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  process.stdin.on('end', async () => {
    await consumer.disconnect();
    process.exit(0);
  });
  process.stdin.resume();
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: batch });
}

main().catch((e) => {
  say('failed', e.message);
  process.exit(1);
});
