package config

import (
	"errors"
	"reflect"
	"testing"
)

func TestListenerLimits(t *testing.T) {
	const conns, rate = ".max.connections", ".max.connection.creation.rate"
	s, report, err := NewServer(
		Layer{Source: SourceDynamicBroker, Values: map[string]string{"listener.name.plaintext" + conns: "7"}},
		Layer{Values: map[string]string{"listener.name.plaintext" + conns: "5", "listener.name.plaintext" + rate: "9", "listener.name.inside" + rate: "3"}},
	)
	if err != nil || len(report.Notes) > 0 {
		t.Fatal(report, err)
	}
	if want := (map[string]ListenerLimits{"PLAINTEXT": {7, 9}, "INSIDE": {0, 3}}); !reflect.DeepEqual(s.OfListener, want) {
		t.Errorf("got %v, want %v", s.OfListener, want)
	}
	e := s.DescribeBroker([]string{"listener.name.plaintext" + conns})
	if len(e) != 1 || *e[0].Value != "7" || e[0].Source != SourceDynamicBroker || len(e[0].Synonyms) != 3 || *e[0].Synonyms[1].Value != "5" || e[0].Synonyms[2].Name != "max.connections" {
		t.Errorf("got %+v", e)
	}
	var wrong *ValueError
	_, _, err = NewServer(Layer{Values: map[string]string{"listener.name.plaintext" + conns: "x"}})
	if !errors.As(err, &wrong) || wrong.Key != "listener.name.plaintext"+conns {
		t.Errorf("error %v", err)
	}
}

func TestConnectionOverrides(t *testing.T) {
	for text, want := range map[string][]ConnectionOverride{
		"":                               nil,
		"127.0.0.1:5":                    {{"127.0.0.1", 5}},
		" host.example : 5 , [::1]:-2":   {{"host.example", 5}, {"::1", 0}},
		"2001:db8::1:7":                  {{"2001:db8::1", 7}},
		"127.0.0.1":                      nil,
		"127.0.0.1:x":                    nil,
		":5":                             nil,
		"127.0.0.1:5,":                   nil,
		"127.0.0.1:99999999999999999999": nil,
	} {
		got, err := parseOverrides(text)
		if bad := want == nil && text != ""; bad != (err != nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	_, _, err := NewServer(Layer{Values: map[string]string{"max.connections.per.ip": "0"}})
	var wrong *ValueError
	if !errors.As(err, &wrong) || wrong.Key != "max.connections.per.ip" {
		t.Errorf("error %v", err)
	}
}
