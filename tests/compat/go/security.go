package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	xdg "github.com/xdg-go/scram"
)

// How a client connects, from the environment: SSL_CA and SSL_KEY_STORE are PEM files, SASL_MECHANISM is PLAIN or one
// of SCRAM's, with SASL_USERNAME and SASL_PASSWORD. What is not set is not used.
type Security struct {
	tls       *tls.Config
	mechanism string
	user      string
	password  string
}

func securityFromEnvironment() Security {
	found := Security{
		mechanism: os.Getenv("SASL_MECHANISM"), user: os.Getenv("SASL_USERNAME"), password: os.Getenv("SASL_PASSWORD"),
	}
	if authority := os.Getenv("SSL_CA"); authority != "" {
		text, err := os.ReadFile(authority)
		check("authority", err)
		found.tls = &tls.Config{RootCAs: x509.NewCertPool()}
		if !found.tls.RootCAs.AppendCertsFromPEM(text) {
			fail("%s has no certificate", authority)
		}
	}
	if store := os.Getenv("SSL_KEY_STORE"); store != "" {
		pair, err := tls.LoadX509KeyPair(store, store)
		check("key store", err)
		found.tls.Certificates = []tls.Certificate{pair}
	}
	return found
}

func (s Security) franz() []kgo.Opt {
	var options []kgo.Opt
	if s.tls != nil {
		options = append(options, kgo.DialTLSConfig(s.tls))
	}
	scramAuth := scram.Auth{User: s.user, Pass: s.password}
	mechanisms := map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: s.user, Pass: s.password}.AsMechanism(),
		"SCRAM-SHA-256": scramAuth.AsSha256Mechanism(),
		"SCRAM-SHA-512": scramAuth.AsSha512Mechanism(),
	}
	if s.mechanism != "" {
		options = append(options, kgo.SASL(mechanisms[s.mechanism]))
	}
	return options
}

func (s Security) sarama(config *sarama.Config) {
	config.Net.TLS.Enable, config.Net.TLS.Config = s.tls != nil, s.tls
	if s.mechanism == "" {
		return
	}
	config.Net.SASL.Enable = true
	config.Net.SASL.Mechanism = sarama.SASLMechanism(s.mechanism)
	config.Net.SASL.User, config.Net.SASL.Password = s.user, s.password
	if s.mechanism != "PLAIN" {
		hash := map[string]xdg.HashGeneratorFcn{"SCRAM-SHA-256": xdg.SHA256, "SCRAM-SHA-512": xdg.SHA512}[s.mechanism]
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &saramaScram{hash: hash} }
	}
}

// Sarama leaves SCRAM to its user.
type saramaScram struct {
	hash         xdg.HashGeneratorFcn
	conversation *xdg.ClientConversation
}

func (s *saramaScram) Begin(user, password, authorization string) error {
	client, err := s.hash.NewClient(user, password, authorization)
	if err == nil {
		s.conversation = client.NewConversation()
	}
	return err
}

func (s *saramaScram) Step(challenge string) (string, error) { return s.conversation.Step(challenge) }
func (s *saramaScram) Done() bool                            { return s.conversation.Done() }
