// Copies a topic in transactions with kafkajs; arguments and output are those of java/TxnCopier.java.
const { Kafka, logLevel } = require('kafkajs');

const [broker, source, output, groupId, transactionalId] = process.argv.slice(2);
const say = (...words) => process.stdout.write(words.join(' ') + '\n');
const fail = (e) => {
  say('failed', e.message);
  process.exit(4);
};

const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 100 } });
const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1, transactionTimeout: 20000 });
const consumer = kafka.consumer({ groupId, sessionTimeout: 2000, heartbeatInterval: 300, rebalanceTimeout: 10000, maxWaitTimeInMs: 100 });
consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || fail(payload.error));

let turn = Promise.resolve(); // one transaction at a time

async function copy(partition, messages) {
  for (;;) {
    const txn = await producer.transaction();
    await txn.send({ topic: output, messages: messages.map((m) => ({ key: m.key, value: m.value, partition })) });
    const offset = (BigInt(messages[messages.length - 1].offset) + 1n).toString();
    await txn.sendOffsets({ consumerGroupId: groupId, topics: [{ topic: source, partitions: [{ partition, offset }] }] });
    if (Math.random() < 0.2) {
      await txn.abort();
      say('aborted', messages.length);
      continue;
    }
    await txn.commit();
    say('committed', messages.length);
    return;
  }
}

async function eachBatch({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
  for (let i = 0; i < batch.messages.length && isRunning() && !isStale(); i += 20) {
    const messages = batch.messages.slice(i, i + 20);
    turn = turn.then(() => copy(batch.partition, messages));
    try {
      await turn;
    } catch (e) {
      fail(e); // what of it is committed is not known to kafkajs
    }
    resolveOffset(messages[messages.length - 1].offset);
    await heartbeat();
  }
}

async function main() {
  await producer.connect();
  await (await producer.transaction()).abort(); // takes the transactional id over before offsets are read
  say('ready');
  await consumer.connect();
  await consumer.subscribe({ topics: [source], fromBeginning: true });
  process.stdin.on('end', () => process.exit(0));
  process.stdin.resume();
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch });
}

main().catch(fail);
