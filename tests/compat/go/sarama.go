package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/IBM/sarama"
)

// As old as users still set it, and as new as it goes: each version speaks other versions of the requests.
func saramaStory(s *Story) {
	for _, version := range []sarama.KafkaVersion{sarama.V2_1_0_0, sarama.V2_8_0_0, sarama.MaxVersion} {
		old := *s
		old.prefix = s.prefix + "-" + version.String()
		old.saramaVersion(version)
	}
}

func (s *Story) saramaConfig(version sarama.KafkaVersion) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = version
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	s.security.sarama(config)
	return config
}

// Records, a group and transactions: what every secured listener has to carry.
func saramaSecured(s *Story) {
	config, servers := s.saramaConfig(sarama.MaxVersion), []string{s.bootstrap}
	admin, err := sarama.NewClusterAdmin(servers, config)
	check("admin", err)
	defer admin.Close()
	detail := &sarama.TopicDetail{NumPartitions: Partitions, ReplicationFactor: 1}
	check("create topic", admin.CreateTopic(s.in(), detail, false))
	for codec := sarama.CompressionNone; codec <= sarama.CompressionZSTD; codec++ {
		config.Producer.Compression = codec
		s.saramaProduce(servers, config)
	}
	s.counts["group"] = s.saramaGroup(servers, config, "range")
	s.saramaTransactions(servers, config)
}

func (s *Story) saramaVersion(version sarama.KafkaVersion) {
	config := s.saramaConfig(version)
	servers := []string{s.bootstrap}
	admin, err := sarama.NewClusterAdmin(servers, config)
	check("admin", err)
	defer admin.Close()
	detail := &sarama.TopicDetail{NumPartitions: Partitions, ReplicationFactor: 1}
	check("create topic", admin.CreateTopic(s.in(), detail, false))
	for codec := sarama.CompressionNone; codec <= sarama.CompressionZSTD; codec++ {
		config.Producer.Compression = codec
		s.saramaProduce(servers, config)
	}
	strategies := []sarama.BalanceStrategy{
		sarama.NewBalanceStrategyRange(), sarama.NewBalanceStrategySticky(), sarama.NewBalanceStrategyRoundRobin(),
	}
	for _, strategy := range strategies {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
		s.counts["group "+strategy.Name()] += s.saramaGroup(servers, config, strategy.Name())
	}
	if version.IsAtLeast(sarama.V2_8_0_0) {
		s.saramaTransactions(servers, config)
	}
	s.saramaAdmin(admin)
}

func (s *Story) saramaProduce(servers []string, config *sarama.Config) {
	producer, err := sarama.NewSyncProducer(servers, config)
	check("producer", err)
	defer producer.Close()
	var messages []*sarama.ProducerMessage
	for n := 0; n < Records; n++ {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: s.in(), Key: sarama.ByteEncoder(key(n)), Value: sarama.ByteEncoder(value(n)),
			Headers: []sarama.RecordHeader{{Key: []byte("n"), Value: []byte(fmt.Sprint(n))}},
		})
	}
	check("produce", producer.SendMessages(messages))
	s.counts["produced"] += len(messages)
}

type saramaReader struct {
	lock sync.Mutex
	seen map[string]bool
	done context.CancelFunc
}

func (*saramaReader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*saramaReader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *saramaReader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		r.lock.Lock()
		r.seen[fmt.Sprintf("%d/%d", message.Partition, message.Offset)] = true
		if len(r.seen) == Codecs*Records {
			r.done()
		}
		r.lock.Unlock()
	}
	return nil
}

func (s *Story) saramaGroup(servers []string, config *sarama.Config, name string) int {
	group, err := sarama.NewConsumerGroup(servers, s.group(name), config)
	check("group", err)
	defer group.Close()
	ctx, cancel := context.WithTimeout(s.ctx, Patience)
	defer cancel()
	reader := &saramaReader{seen: map[string]bool{}, done: cancel}
	for ctx.Err() == nil {
		check("consume", group.Consume(ctx, []string{s.in()}, reader))
	}
	return len(reader.seen)
}

func (s *Story) saramaTransactions(servers []string, config *sarama.Config) {
	transactional := *config
	transactional.Producer.Transaction.ID = s.prefix
	producer, err := sarama.NewSyncProducer(servers, &transactional)
	check("transactional producer", err)
	defer producer.Close()
	for n := 0; n < 6; n++ {
		check("begin", producer.BeginTxn())
		_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: s.in(), Value: sarama.ByteEncoder(value(n))})
		check("send", err)
		if n%3 == 0 {
			check("abort", producer.AbortTxn())
		} else {
			check("commit", producer.CommitTxn())
			s.counts["committed"]++
		}
	}
}

func (s *Story) saramaAdmin(admin sarama.ClusterAdmin) {
	_, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: s.in()})
	check("describe config", err)
	groups, err := admin.DescribeConsumerGroups([]string{s.group("range")})
	check("describe group", err)
	if groups[0].State != "Empty" {
		fail("the group is %s", groups[0].State)
	}
	offsets, err := admin.ListConsumerGroupOffsets(s.group("range"), map[string][]int32{s.in(): {0, 1, 2}})
	check("group offsets", err)
	for _, block := range offsets.Blocks[s.in()] {
		s.counts["committed offsets"] += int(block.Offset)
	}
	check("delete records", admin.DeleteRecords(s.in(), map[int32]int64{0: 1}))
	check("delete group", admin.DeleteConsumerGroup(s.group("range")))
	check("create partitions", admin.CreatePartitions(s.in(), Partitions+2, nil, false))
	check("delete topic", admin.DeleteTopic(s.in()))
}
