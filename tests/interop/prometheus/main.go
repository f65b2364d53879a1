// Evaluates PromQL by Prometheus itself: its parser, its storage and its engine.
//
// Standard input is an object: scrapes (time in milliseconds, instance, text), queries, rules (the text of a file of
// alert rules), time. Standard output has the samples or the error of each query, and the errors of the rules.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

type scrape struct {
	Time     int64
	Instance string
	Text     string
}

type question struct {
	Scrapes []scrape
	Queries []string
	Rules   string
	Time    int64
}

type result struct {
	Error   string              `json:"error,omitempty"`
	Samples []map[string]string `json:"samples"`
	Values  []float64           `json:"-"`
}

type answer struct {
	Results []result `json:"results"`
	Rules   []string `json:"rules"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "promql")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	database, err := tsdb.Open(folder, quiet, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return err
	}
	defer database.Close()
	for _, each := range asked.Scrapes {
		if err := store(database, each); err != nil {
			return fmt.Errorf("scrape of %s: %w", each.Instance, err)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: quiet, MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true,
	})
	said := answer{Results: []result{}, Rules: []string{}}
	for _, text := range asked.Queries {
		said.Results = append(said.Results, evaluated(engine, database, text, time.UnixMilli(asked.Time)))
	}
	_, faults := rulefmt.Parse([]byte(asked.Rules))
	for _, fault := range faults {
		said.Rules = append(said.Rules, fault.Error())
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

func store(database *tsdb.DB, each scrape) error {
	appender := database.Appender(context.Background())
	parser := textparse.NewPromParser([]byte(each.Text), labels.NewSymbolTable())
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return appender.Commit()
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := parser.Series()
		var found labels.Labels
		parser.Metric(&found)
		named := labels.NewBuilder(found).Set("instance", each.Instance).Set("job", "broker-core").Labels()
		if _, err := appender.Append(0, named, each.Time, value); err != nil {
			return err
		}
	}
}

func evaluated(engine *promql.Engine, database storage.Queryable, text string, at time.Time) result {
	query, err := engine.NewInstantQuery(context.Background(), database, nil, text, at)
	if err != nil {
		return result{Error: err.Error()}
	}
	defer query.Close()
	found := query.Exec(context.Background())
	if found.Err != nil {
		return result{Error: found.Err.Error()}
	}
	samples := []map[string]string{}
	if vector, err := found.Vector(); err == nil {
		for _, sample := range vector {
			shown := sample.Metric.Map()
			shown["value"] = fmt.Sprint(sample.F)
			samples = append(samples, shown)
		}
	} else if scalar, err := found.Scalar(); err == nil {
		samples = append(samples, map[string]string{"value": fmt.Sprint(scalar.V)})
	} else {
		return result{Error: "neither a vector nor a number"}
	}
	return result{Samples: samples}
}
