package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func (s *Story) franzClient(options ...kgo.Opt) *kgo.Client {
	options = append(options, s.security.franz()...)
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(s.bootstrap))...)
	check("client", err)
	return client
}

func franz(s *Story) {
	client := s.franzClient()
	defer client.Close()
	admin := kadm.NewClient(client)
	for _, topic := range []string{s.in(), s.out()} {
		_, err := admin.CreateTopic(s.ctx, Partitions, 1, nil, topic)
		check("create topic", err)
	}
	s.franzProduce()
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative": kgo.CooperativeStickyBalancer(),
	}
	for name, balancer := range balancers {
		s.counts["group "+name] = s.franzGroup(name, kgo.Balancers(balancer))
	}
	s.franzTransactions()
	next := context.WithValue(s.ctx, "opt_in_kafka_next_gen_balancer_beta", true)
	s.counts["group consumer"] = s.franzGroup("consumer", kgo.WithContext(next))
	s.franzAdmin(admin)
	bad := s.franzClient(kgo.RecordDeliveryTimeout(Patience))
	defer bad.Close()
	err := bad.ProduceSync(s.ctx, &kgo.Record{Topic: "no such name!", Value: value(0)}).FirstErr()
	if !errors.Is(err, kerr.InvalidTopicException) {
		fail("a topic name that is not allowed: %v", err)
	}
}

// Records, a group and transactions: what every secured listener has to carry.
func franzSecured(s *Story) {
	client := s.franzClient()
	defer client.Close()
	for _, topic := range []string{s.in(), s.out()} {
		_, err := kadm.NewClient(client).CreateTopic(s.ctx, Partitions, 1, nil, topic)
		check("create topic", err)
	}
	s.franzProduce()
	s.counts["group"] = s.franzGroup("range", kgo.Balancers(kgo.RangeBalancer()))
	s.franzTransactions()
}

func (s *Story) franzProduce() {
	codecs := []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
	}
	for _, codec := range codecs {
		producer := s.franzClient(kgo.ProducerBatchCompression(codec))
		var records []*kgo.Record
		for n := 0; n < Records; n++ {
			header := kgo.RecordHeader{Key: "n", Value: []byte(fmt.Sprint(n))}
			records = append(records, &kgo.Record{
				Topic: s.in(), Key: key(n), Value: value(n), Headers: []kgo.RecordHeader{header},
			})
		}
		check("produce", producer.ProduceSync(s.ctx, records...).FirstErr())
		s.counts["produced"] += len(records)
		producer.Close()
	}
}

// Two members read everything; how many different records they saw together.
func (s *Story) franzGroup(name string, how ...kgo.Opt) int {
	how = append(how, kgo.ConsumerGroup(s.group(name)), kgo.ConsumeTopics(s.in()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	members := []*kgo.Client{s.franzClient(how...), s.franzClient(how...)}
	seen := map[string]bool{}
	for end := time.Now().Add(Patience); len(seen) < Codecs*Records && time.Now().Before(end); {
		for _, member := range members {
			brief, cancel := context.WithTimeout(s.ctx, 100*time.Millisecond)
			fetches := member.PollFetches(brief)
			cancel()
			for _, each := range fetches.Errors() {
				if !errors.Is(each.Err, context.DeadlineExceeded) {
					check("fetch", each.Err)
				}
			}
			fetches.EachRecord(func(r *kgo.Record) { seen[fmt.Sprintf("%d/%d", r.Partition, r.Offset)] = true })
		}
	}
	for _, member := range members {
		check("commit", member.CommitUncommittedOffsets(s.ctx))
		member.Close()
	}
	return len(seen)
}

// Every third transaction is aborted, and its input read again.
func (s *Story) franzTransactions() {
	session, err := kgo.NewGroupTransactSession(append(s.security.franz(),
		kgo.SeedBrokers(s.bootstrap), kgo.TransactionalID(s.prefix), kgo.ConsumerGroup(s.group("eos")),
		kgo.ConsumeTopics(s.in()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(), kgo.FetchMaxPartitionBytes(4096),
	)...)
	check("session", err)
	defer session.Close()
	for round := 1; s.counts["copied"] < Codecs*Records; round++ {
		fetches := session.PollRecords(s.ctx, 150)
		check("transactions", s.ctx.Err())
		check("begin", session.Begin())
		copied := 0
		fetches.EachRecord(func(r *kgo.Record) {
			copied++
			session.Produce(s.ctx, &kgo.Record{Topic: s.out(), Key: r.Key, Value: r.Value}, nil)
		})
		wanted := kgo.TransactionEndTry(round%3 != 0)
		isCommitted, err := session.End(s.ctx, wanted)
		check("end", err)
		if isCommitted {
			s.counts["copied"] += copied
		} else {
			s.counts["aborted"]++
		}
	}
}

func (s *Story) franzAdmin(admin *kadm.Client) {
	ctx := s.ctx
	lags, err := admin.Lag(ctx, s.group("range"))
	check("lag", err)
	check("lag", lags.Error())
	s.counts["lag"] = int(lags[s.group("range")].Lag.Total())
	_, err = admin.DescribeTopicConfigs(ctx, s.in())
	check("describe configs", err)
	retention := "600000"
	changes := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &retention}}
	_, err = admin.AlterTopicConfigs(ctx, changes, s.in())
	check("alter configs", err)
	_, err = admin.CreatePartitions(ctx, 2, s.in())
	check("create partitions", err)
	_, err = admin.DescribeAllLogDirs(ctx, nil)
	check("log directories", err)
	transactions, err := admin.ListTransactions(ctx, nil, nil)
	check("list transactions", err)
	if _, found := transactions[s.prefix]; !found {
		fail("the transactional id is not among %v", transactions.TransactionalIDs())
	}
	_, err = admin.DescribeTransactions(ctx, s.prefix)
	check("describe transactions", err)
	_, err = admin.DescribeProducers(ctx, kadm.TopicsSet{s.out(): {0: {}}})
	check("describe producers", err)
	_, err = admin.OffsetForLeaderEpoch(ctx, kadm.OffsetForLeaderEpochRequest{s.in(): {0: 0}})
	check("offset for leader epoch", err)
	at := kadm.Offset{Topic: s.in(), Partition: 0, At: 10}
	_, err = admin.DeleteRecords(ctx, kadm.Offsets{s.in(): {0: at}})
	check("delete records", err)
	starts, err := admin.ListStartOffsets(ctx, s.in())
	check("start offsets", err)
	start, _ := starts.Lookup(s.in(), 0)
	s.counts["start"] = int(start.Offset)
	groups, err := admin.DeleteGroups(ctx, s.group("range"))
	check("delete groups", errors.Join(err, groups.Error()))
	topics, err := admin.DeleteTopics(ctx, s.in())
	check("delete topics", errors.Join(err, topics.Error()))
}
