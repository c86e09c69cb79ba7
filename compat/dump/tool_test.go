package dump

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gregor/compat/jars"
)

// tools are the versions of the tool and the class that holds it in each.
var tools = [...]struct{ version, class string }{
	{"3.9.1", "kafka.tools.DumpLogSegments"},
	{"4.4.0", "org.apache.kafka.tools.DumpLogSegments"},
}

// complaints are what the tool prints when something is wrong; it ends with exit code 0 nevertheless.
var complaints = regexp.MustCompile(`(?m)^.*(Mismatches in|is followed by|mismatch in|out of order timestamp|not found in|Non-consecutive|invalid bytes|isvalid: false|Error at|Exception|found log offset|Index timestamp).*$`)

// offsetsFromMinusOne is what 4.4.0 prints about every sound segment that does not begin at offset 0, of Apache Kafka's own
// logs too: it counts from -1 to the segment's base offset. It is passed over when the offset is just that.
var offsetsFromMinusOne = regexp.MustCompile(`(?m)^Non-consecutive offsets in \S*/0*(\d+)\.log\n\s+-1 is followed by (\d+)$`)

// stored is one record as the tool prints it.
type stored struct {
	offset, timestamp  int64
	keySize, valueSize int
	text               string // headerKeys, key and payload
}

// dump is what the tool said about the files of one directory.
type dump struct {
	records  []stored
	batches  int
	segments int
	codecs   map[string]bool
	producer int // entries in the producer snapshots
}

// filesOf lists a partition's files that the tool understands, logs in order of their base offset.
func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.log", "*.index", "*.timeindex", "*.snapshot"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(found)
		files = append(files, found...)
	}
	return files
}

// runTool gives files of all dirs to one run of a tool and returns its output, having looked for complaints.
func runTool(t *testing.T, tool struct{ version, class string }, files []string, options ...string) string {
	t.Helper()
	lib, err := jars.Tools(tool.version).Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	args := append(options, "--files", strings.Join(files, ","))
	out, err := jars.Java(t.Context(), lib+"/*", tool.class, args...).CombinedOutput()
	text := string(out)
	if err != nil {
		t.Fatalf("DumpLogSegments %s %v: %v\n%.3000s", tool.version, options, err, text)
	}
	text = offsetsFromMinusOne.ReplaceAllStringFunc(text, func(section string) string {
		if m := offsetsFromMinusOne.FindStringSubmatch(section); m[1] == m[2] {
			return ""
		}
		return section
	})
	for i, line := range complaints.FindAllStringIndex(text, 5) {
		t.Errorf("DumpLogSegments %s, complaint %d: …%.900s", tool.version, i+1, text[max(0, line[0]-200):min(len(text), line[1]+300)])
	}
	return text
}

var (
	recordLine = regexp.MustCompile(`^\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: -?\d+ (headerKeys: .*)$`)
	batchLine  = regexp.MustCompile(`^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* magic: 2 compresscodec: (\S+) crc: \d+ isvalid: true$`)
)

// parseDump takes the output of --deep-iteration --print-data-log apart, by partition directory.
func parseDump(t *testing.T, text string) map[string]*dump {
	t.Helper()
	dumps := map[string]*dump{}
	var d *dump
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if path, ok := strings.CutPrefix(line, "Dumping "); ok {
			dir := filepath.Base(filepath.Dir(path))
			if dumps[dir] == nil {
				dumps[dir] = &dump{codecs: map[string]bool{}}
			}
			d = dumps[dir]
			if strings.HasSuffix(path, ".log") {
				d.segments++
			}
			continue
		}
		if d != nil {
			if err := d.add(line); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
	return dumps
}

func (d *dump) add(line string) error {
	switch {
	case strings.HasPrefix(line, "| offset:"):
		m := recordLine.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("record line of an unknown form: %s", line)
		}
		var r stored
		if _, err := fmt.Sscan(strings.Join(m[1:5], " "), &r.offset, &r.timestamp, &r.keySize, &r.valueSize); err != nil {
			return err
		}
		r.text = m[5]
		d.records = append(d.records, r)
	case strings.HasPrefix(line, "baseOffset:"):
		m := batchLine.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("batch line of an unknown form: %s", line)
		}
		d.batches++
		d.codecs[m[4]] = true
	case strings.HasPrefix(line, "producerId:"):
		d.producer++
	}
	return nil
}
