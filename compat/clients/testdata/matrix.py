"""The kafka-python side of the client matrix. The first argument is the broker version to take for granted, "" to ask;
then come commands and files as java/Matrix.java has them."""
import base64
import hashlib
import sys
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition


def encode(b):
    if b is None:
        return "-"
    if len(b) <= 256:
        return "=" + base64.b64encode(b).decode()
    return "#%d:%s" % (len(b), hashlib.sha256(b).hexdigest())


def decode(field):
    return None if field == "-" else base64.b64decode(field[1:])


def headers(field):
    pairs = [h.split("=", 1) for h in field.split(",")] if field else []
    return [(k, decode(v)) for k, v in pairs]


def rows(path):
    with open(path) as f:
        return [line.rstrip("\n").split("\t") for line in f]


def failure(topic, e):
    return "!\t%s\t%s\n" % (topic, " ".join(repr(e).split()))


def produce(options, broker, jobs, records, out):
    records = rows(records)
    old = options.get("api_version", (99,))
    with open(out, "w") as w:
        for topic, codec, modern in rows(jobs):
            producer = KafkaProducer(
                bootstrap_servers=broker, acks="all", linger_ms=5, enable_idempotence=modern == "true" and old > (0, 11),
                compression_type=None if codec == "none" else codec, **options)
            try:
                acks = [producer.send(topic, partition=int(p), timestamp_ms=int(t), key=decode(k), value=decode(v), headers=headers(h) if modern == "true" else [])
                        for p, t, k, v, h in records]
                for ack in acks:
                    m = ack.get(timeout=30)
                    w.write("%s\t%d\t%d\n" % (m.topic, m.partition, m.offset))
            except Exception as e:
                w.write(failure(topic, e))
            producer.close()


def consume(options, broker, topics, out, when):
    with open(out, "w") as w:
        consumer = KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False, **options)
        for (topic,) in rows(topics):
            try:
                read(consumer, topic, w, when, options.get("api_version", (99,)) >= (0, 10, 1))
            except Exception as e:
                w.write(failure(topic, e))
                consumer.close()
                consumer = KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False, **options)
        consumer.close()


def read(consumer, topic, w, when, asks_times):
    parts = sorted(TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic))
    consumer.assign(parts)
    if asks_times:
        begin = consumer.beginning_offsets(parts)
        end = consumer.end_offsets(parts)
        at = consumer.offsets_for_times({tp: when for tp in parts})
    else:
        consumer.seek_to_end(*parts)
        end = {tp: consumer.position(tp) for tp in parts}
        consumer.seek_to_beginning(*parts)
        begin = {tp: consumer.position(tp) for tp in parts}
    consumer.seek_to_beginning(*parts)
    for tp in parts:
        t = "-" if not asks_times else "%d" % (at[tp].offset if at[tp] else -1)
        w.write("?\t%s\t%d\t%d\t%d\t%s\n" % (topic, tp.partition, begin[tp], end[tp], t))
    deadline = time.time() + 10
    while any(consumer.position(tp) < end[tp] for tp in parts):
        if time.time() > deadline:
            raise TimeoutError("no record for 10 s before the end %r" % end)
        for batch in consumer.poll(timeout_ms=500).values():
            deadline = time.time() + 10
            for r in batch:
                h = ",".join("%s=%s" % (k, encode(v)) for k, v in r.headers)
                t = -1 if r.timestamp is None else r.timestamp
                w.write("\t".join([r.topic, str(r.partition), str(r.offset), str(t), encode(r.key), encode(r.value), h]) + "\n")


if __name__ == "__main__":
    version = {"api_version": tuple(int(n) for n in sys.argv[1].split("."))} if sys.argv[1] else {}
    if sys.argv[2] == "produce":
        produce(version, *sys.argv[3:7])
    else:
        consume(version, sys.argv[3], sys.argv[4], sys.argv[5], int(sys.argv[6]))
