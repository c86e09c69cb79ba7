"""One member of a group with confluent-kafka (librdkafka); arguments and output are those of java/GroupMember.java."""
import sys
import threading

from confluent_kafka import Consumer, KafkaException, TopicPartition

broker, group, topic, instance, assignor = sys.argv[1:6]
stopped = threading.Event()


def say(*words):
    sys.stdout.write(" ".join(str(w) for w in words) + "\n")
    sys.stdout.flush()


def numbers(partitions):
    return ",".join(str(p.partition) for p in partitions)


def wait_for_end():
    while sys.stdin.buffer.read(1):
        pass
    stopped.set()


config = {
    "bootstrap.servers": broker, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest",
    "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "fetch.wait.max.ms": 200,
}
if instance != "-":
    config["group.instance.id"] = instance
    config["session.timeout.ms"] = 30000
if assignor != "-":
    config["partition.assignment.strategy"] = assignor
consumer = Consumer(config)
consumer.subscribe(
    [topic], on_assign=lambda _, p: say("assigned", numbers(p)), on_revoke=lambda _, p: say("revoked", numbers(p)),
    on_lost=lambda _, p: say("revoked", numbers(p)))
threading.Thread(target=wait_for_end, daemon=True).start()
while not stopped.is_set():
    done = {}
    try:
        for m in consumer.consume(num_messages=100, timeout=0.1):
            if m.error():
                say("failed", m.error())
                continue
            say("record", m.partition(), m.offset(), m.value().decode())
            done[m.partition()] = m.offset() + 1
        if done:
            consumer.commit(offsets=[TopicPartition(topic, p, o) for p, o in done.items()], asynchronous=False)
            for p, o in done.items():
                say("committed", p, o)
    except KafkaException as e:
        say("failed", e)
consumer.close()
