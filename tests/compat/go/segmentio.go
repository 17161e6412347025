package main

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

func segmentio(s *Story) {
	connection, err := kafka.DialContext(s.ctx, "tcp", s.bootstrap)
	check("dial", err)
	defer connection.Close()
	topic := kafka.TopicConfig{Topic: s.in(), NumPartitions: Partitions, ReplicationFactor: 1}
	check("create topic", connection.CreateTopics(topic))
	_, err = connection.Controller()
	check("controller", err)
	for _, codec := range []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd} {
		writer := &kafka.Writer{
			Addr: kafka.TCP(s.bootstrap), Topic: s.in(), Balancer: &kafka.Hash{}, Compression: codec,
			BatchTimeout: 10 * time.Millisecond, RequiredAcks: kafka.RequireAll,
		}
		var messages []kafka.Message
		for n := 0; n < Records; n++ {
			header := kafka.Header{Key: "n", Value: []byte(fmt.Sprint(n))}
			messages = append(messages, kafka.Message{Key: key(n), Value: value(n), Headers: []kafka.Header{header}})
		}
		check("write", writer.WriteMessages(s.ctx, messages...))
		s.counts["produced"] += len(messages)
		check("close", writer.Close())
	}
	s.segmentioGroup()
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{s.bootstrap}, Topic: s.in(), Partition: 0})
	check("offset at a time", reader.SetOffsetAt(s.ctx, time.Now().Add(-time.Hour)))
	message, err := reader.ReadMessage(s.ctx)
	check("read", err)
	s.counts["first offset"] = int(message.Offset)
	check("close", reader.Close())
}

func (s *Story) segmentioGroup() {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{s.bootstrap}, GroupID: s.group("group"), Topic: s.in(), MaxBytes: 10e6,
	})
	ctx, cancel := context.WithTimeout(s.ctx, Patience)
	defer cancel()
	seen := map[string]bool{}
	for len(seen) < Codecs*Records {
		message, err := reader.ReadMessage(ctx)
		check("read", err)
		seen[fmt.Sprintf("%d/%d", message.Partition, message.Offset)] = true
	}
	s.counts["group"] = len(seen)
	check("close", reader.Close())
}
