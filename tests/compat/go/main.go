// Go's clients at work on a broker: `goclients CLIENT BOOTSTRAP PREFIX` does what its users do with them.
//
// Topics are PREFIX-in, which gets Records records with each codec, and PREFIX-out, which gets the same through
// transactions where the client has them. What went wrong is said and ends the program with status 1; what was counted
// is one JSON object on standard output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

const (
	Partitions = 3
	Records    = 200 // with each codec
	Codecs     = 5
	Patience   = 60 * time.Second
)

type Counts map[string]int

type Story struct {
	ctx       context.Context
	bootstrap string
	prefix    string
	security  Security
	counts    Counts
}

func (s *Story) in() string  { return s.prefix + "-in" }
func (s *Story) out() string { return s.prefix + "-out" }

func (s *Story) group(name string) string { return s.prefix + "-" + name }

func key(n int) []byte   { return []byte(fmt.Sprintf("key-%d", n)) }
func value(n int) []byte { return []byte(fmt.Sprintf("value-%d", n)) }

func check(what string, err error) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

func main() {
	stories := map[string]func(*Story){
		"franz": franz, "sarama": saramaStory, "segmentio": segmentio,
		"franz-secured": franzSecured, "sarama-secured": saramaSecured,
	}
	if len(os.Args) != 4 || stories[os.Args[1]] == nil {
		fail("usage: goclients franz|sarama|segmentio|franz-secured|sarama-secured BOOTSTRAP PREFIX")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*Patience)
	defer cancel()
	story := &Story{
		ctx: ctx, bootstrap: os.Args[2], prefix: os.Args[3], security: securityFromEnvironment(), counts: Counts{},
	}
	stories[os.Args[1]](story)
	check("report", json.NewEncoder(os.Stdout).Encode(story.counts))
}
