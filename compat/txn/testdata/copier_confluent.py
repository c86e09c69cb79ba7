"""Copies a topic in transactions with confluent-kafka (librdkafka); arguments and output are those of java/TxnCopier.java."""
import os
import random
import sys
import threading

from confluent_kafka import Consumer, Producer, TopicPartition

broker, source, output, group, transactional_id = sys.argv[1:6]
stopped = threading.Event()
# Re-bootstrapping (KIP-899) throws the only broker's handle away, and 2.16.1 then waits for ever for the group coordinator that it remembers.
reconnect = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "metadata.recovery.strategy": "none"}


def say(*words):
    print(*words, flush=True)


def wait_for_end():
    while sys.stdin.buffer.read(1):
        pass
    stopped.set()


def copy(producer, consumer, records, abort):
    producer.begin_transaction()
    offsets = {}
    for r in records:
        producer.produce(output, value=r.value(), key=r.key(), partition=r.partition())
        offsets[r.partition()] = r.offset() + 1
    positions = [TopicPartition(source, p, o) for p, o in offsets.items()]
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
    if abort:
        producer.abort_transaction(30)
        say("aborted", len(records))
        return False
    producer.commit_transaction(30)
    say("committed", len(records))
    return True


def main():
    threading.Thread(target=wait_for_end, daemon=True).start()
    producer = Producer({"bootstrap.servers": broker, "transactional.id": transactional_id, "transaction.timeout.ms": 20000,
                         **reconnect})
    producer.init_transactions(30)
    say("ready")
    consumer = Consumer({"bootstrap.servers": broker, "group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed",
                         "auto.offset.reset": "earliest", "session.timeout.ms": 2000, "heartbeat.interval.ms": 300, "fetch.wait.max.ms": 100,
                         **reconnect})
    consumer.subscribe([source])
    while not stopped.is_set():
        records = [r for r in consumer.consume(20, 0.2) if r.error() is None]
        while records and not copy(producer, consumer, records, random.randrange(5) == 0):
            pass
    consumer.close()


try:
    main()
except Exception as e:  # whatever it is, the test wants to read it
    say("failed", e)
    os._exit(4)
