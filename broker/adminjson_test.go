package broker

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fillRequest sets a request's fields from JSON. What is not named has its default.
func (p *adminPlay) fillRequest(r kmsg.Request, body string) error {
	var tree any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if strings.TrimSpace(body) == "" {
		tree = map[string]any{}
	} else if err := d.Decode(&tree); err != nil {
		return err
	}
	return p.fill(reflect.ValueOf(r).Elem(), tree)
}

func (p *adminPlay) fill(v reflect.Value, tree any) error {
	if d, ok := v.Addr().Interface().(interface{ Default() }); ok {
		d.Default()
	}
	switch x := tree.(type) {
	case nil:
		v.SetZero()
	case map[string]any:
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			return p.fill(v.Elem(), tree)
		}
		for name, e := range x {
			f := v.FieldByName(name)
			if !f.IsValid() {
				return fmt.Errorf("%v has no field %s", v.Type(), name)
			}
			if err := p.fill(f, e); err != nil {
				return err
			}
		}
	case []any:
		v.Set(reflect.MakeSlice(v.Type(), len(x), len(x)))
		for i := range x {
			if err := p.fill(v.Index(i), x[i]); err != nil {
				return err
			}
		}
	default:
		return p.fillValue(v, tree)
	}
	return nil
}

func (p *adminPlay) fillValue(v reflect.Value, value any) error {
	text, number := "", int64(0)
	switch x := value.(type) {
	case bool:
		v.SetBool(x)
		return nil
	case string:
		text = x
	case json.Number:
		f, err := x.Float64()
		if err != nil {
			return err
		}
		number = int64(f)
		if v.Kind() == reflect.Float64 {
			v.SetFloat(f)
			return nil
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.ValueOf(&text))
	case reflect.String:
		v.SetString(text)
	case reflect.Slice:
		v.SetBytes([]byte(text))
	case reflect.Array:
		id := [16]byte{1, 2, 3}
		if text != "unknown" {
			id = p.lookUp(text).TopicID
		}
		v.Set(reflect.ValueOf(id))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(number)
	default:
		return fmt.Errorf("%v cannot be set", v.Type())
	}
	return nil
}

// normaliser makes a tree of an answer: maps, lists, strings, numbers and bools, without what differs between any two brokers. Fields that have
// their defaults are left out. What has no order is sorted.
type normaliser struct {
	script, dir string
	others      []string // names of the other scripts, whose topics are left out
}

func (n *normaliser) tree(resp kmsg.Response) any {
	return n.value("", reflect.ValueOf(resp).Elem())
}

func (n *normaliser) value(field string, v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		return n.object(v)
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return n.value(field, v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return hex.EncodeToString(v.Bytes())
		}
		return n.list(v)
	case reflect.Array:
		return "id"
	case reflect.String:
		return n.text(field, v.String())
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return number(field, v.Int())
	}
	if f, ok := v.Interface().(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return fmt.Sprint(f)
	}
	return v.Interface()
}

func (n *normaliser) object(v reflect.Value) any {
	def := reflect.New(v.Type())
	if d, ok := def.Interface().(interface{ Default() }); ok {
		d.Default()
	}
	out := map[string]any{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch name {
		case "Version", "UnknownTags", "ThrottleMillis":
			continue
		}
		if f := v.Field(i); !reflect.DeepEqual(f.Interface(), def.Elem().Field(i).Interface()) {
			out[name] = n.value(name, f)
		}
	}
	return out
}

func (n *normaliser) list(v reflect.Value) any {
	out := make([]any, 0, v.Len())
	for i := range v.Len() {
		if e := n.value("", v.Index(i)); !n.foreign(e) {
			out = append(out, e)
		}
	}
	if v.Type().Elem().Kind() == reflect.Struct {
		sort.SliceStable(out, func(i, j int) bool { return sortKey(out[i]) < sortKey(out[j]) })
	}
	return out
}

// foreign reports if an element is a topic of another script or of the broker itself.
func (n *normaliser) foreign(e any) bool {
	m, _ := e.(map[string]any)
	name, _ := m["Topic"].(string)
	if _, ok := m["Type"].(int64); ok { // one of ListConfigResources
		name, _ = m["Name"].(string)
	}
	return strings.HasPrefix(name, "__") || slices.ContainsFunc(n.others, func(o string) bool { return strings.HasPrefix(name, o+"-") })
}

// sortKey orders elements of a list.
func sortKey(e any) string {
	raw, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return elementName(e) + " " + string(raw)
}

// elementName names an element of a list by the fields that tell it from others.
func elementName(e any) string {
	m, ok := e.(map[string]any)
	if !ok {
		return ""
	}
	var words []string
	for _, field := range []string{"ResourceType", "Topic", "TopicID", "Partition", "ResourceName", "Name", "Dir", "User", "Type", "Key", "NodeID", "Feature", "Mechanism"} {
		if x, ok := m[field]; ok {
			words = append(words, fmt.Sprint(x))
		}
	}
	return strings.Join(words, "/")
}

func number(field string, x int64) any {
	switch field {
	case "ErrorCode", "ConfigErrorCode":
		if err, ok := kerr.ErrorForCode(int16(x)).(*kerr.Error); ok {
			return err.Message
		}
		return "NONE"
	case "Port":
		return "port"
	case "TotalBytes", "UsableBytes":
		return "bytes"
	case "LastTimestamp":
		return "time"
	case "ProducerID":
		return "producer"
	}
	return x
}

func (n *normaliser) text(field, x string) any {
	switch field {
	case "Host":
		return "host"
	case "ClusterID":
		return "cluster"
	case "Documentation":
		return "words"
	}
	x = strings.ReplaceAll(x, n.dir, "$dir")
	x = regexp.MustCompile(`_v\d+\b`).ReplaceAllString(x, "$$v")
	return regexp.MustCompile(`x{60,}`).ReplaceAllStringFunc(x, func(s string) string { return fmt.Sprintf("$x(%d)", len(s)) })
}
