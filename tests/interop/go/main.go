// Regex consumers of the official Go client, unmodified, driven by JSON lines on standard input; what happens to them
// is told in JSON lines on standard output.
//
// Usage: regex-consumers SERVICE_URL [TOKEN_FILE [CA_FILE]]; an empty name is none. The token is read again for each use.
//
//	{"do": "subscribe", "id", "pattern", "subscription", "period"} -> {"event": "subscribed" | "failed", "id", "error"},
//	    then {"event": "message", "id", "topic", "text"}
//	{"do": "publish", "id", "topic", "text"} -> {"event": "published" | "failed", "id", "error"}
//
// The end of the input closes everything.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

type order struct {
	Do           string `json:"do"`
	ID           string `json:"id"`
	Pattern      string `json:"pattern"`
	Subscription string `json:"subscription"`
	Period       int    `json:"period"`
	Topic        string `json:"topic"`
	Text         string `json:"text"`
}

var saying sync.Mutex

func say(event map[string]any) {
	line, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(string(line))
}

func argument(index int) string {
	if index < len(os.Args) {
		return os.Args[index]
	}
	return ""
}

func subscribe(client pulsar.Client, asked order) error {
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		TopicsPattern:               asked.Pattern,
		SubscriptionName:            asked.Subscription,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		AutoDiscoveryPeriod:         time.Duration(asked.Period) * time.Second,
	})
	if err != nil {
		return err
	}
	say(map[string]any{"event": "subscribed", "id": asked.ID})
	go func() {
		for {
			message, err := consumer.Receive(context.Background())
			if err != nil {
				say(map[string]any{"event": "closed", "id": asked.ID})
				return
			}
			say(map[string]any{
				"event": "message", "id": asked.ID, "topic": message.Topic(), "text": string(message.Payload()),
			})
			if err := consumer.Ack(message); err != nil {
				fmt.Fprintln(os.Stderr, "not acknowledged:", err)
			}
		}
	}()
	return nil
}

func publish(client pulsar.Client, asked order) error {
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: asked.Topic})
	if err != nil {
		return err
	}
	defer producer.Close()
	_, err = producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte(asked.Text)})
	if err == nil {
		say(map[string]any{"event": "published", "id": asked.ID})
	}
	return err
}

func main() {
	options := pulsar.ClientOptions{URL: os.Args[1], OperationTimeout: 30 * time.Second}
	if token := argument(2); token != "" {
		options.Authentication = pulsar.NewAuthenticationTokenFromFile(token)
	}
	if ca := argument(3); ca != "" {
		options.TLSTrustCertsFilePath = ca
	}
	client, err := pulsar.NewClient(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	say(map[string]any{"event": "ready"})
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var asked order
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		switch asked.Do {
		case "subscribe":
			err = subscribe(client, asked)
		case "publish":
			err = publish(client, asked)
		default:
			err = fmt.Errorf("no such order: %q", asked.Do)
		}
		if err != nil {
			say(map[string]any{"event": "failed", "id": asked.ID, "error": err.Error()})
		}
	}
	os.Exit(0) // without unsubscribing: the subscriptions keep their places
}
