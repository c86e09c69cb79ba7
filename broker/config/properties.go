package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxPropertiesSize limits a properties file, in bytes.
const MaxPropertiesSize = 1 << 20

// Properties is a parsed properties file.
type Properties struct {
	Values map[string]string
	// Lines has the line, from 1, that each key's value begins on.
	Lines map[string]int
	// Repeated are keys that were given more than once, in the order of the file; as in Java the last value counts.
	Repeated []string
}

// ReadFile reads a properties file as a layer. Errors name the file and the line.
func ReadFile(path string) (Layer, error) {
	f, err := os.Open(path)
	if err != nil {
		return Layer{}, fmt.Errorf("cannot read the configuration file: %w", err)
	}
	defer f.Close()
	p, err := ParseProperties(f)
	if err != nil {
		return Layer{}, fmt.Errorf("configuration file %s: %w", path, err)
	}
	return Layer{Origin: path, Values: p.Values, Lines: p.Lines, Repeated: p.Repeated}, nil
}

// ParseProperties reads java.util.Properties' format: comments, continuation lines, escapes, "=", ":" or white space after the key. The text
// is UTF-8; a line that is not is taken as ISO 8859-1, which is what Kafka reads. The error names every malformed line; the rest is returned.
func ParseProperties(r io.Reader) (Properties, error) {
	p := Properties{Values: map[string]string{}, Lines: map[string]int{}}
	b, err := io.ReadAll(io.LimitReader(r, MaxPropertiesSize+1))
	if err != nil {
		return p, err
	}
	if len(b) > MaxPropertiesSize {
		return p, fmt.Errorf("file is larger than %d bytes", MaxPropertiesSize)
	}
	lines := strings.Split(normalizeNewlines(string(b)), "\n")
	var errs []error
	for i := 0; i < len(lines); {
		first := i
		logical, next := joinLine(lines, i)
		i = next
		if logical == "" || logical[0] == '#' || logical[0] == '!' {
			continue
		}
		if err := p.add(logical, first+1); err != nil {
			errs = append(errs, err)
		}
	}
	return p, errors.Join(errs...)
}

func (p *Properties) add(logical string, line int) error {
	rawKey, rawValue := splitPair(asUTF8(logical))
	key, err := unescape(rawKey)
	if err != nil {
		return fmt.Errorf("line %d: %w", line, err)
	}
	value, err := unescape(rawValue)
	if err != nil {
		return fmt.Errorf("line %d: value of %s: %w", line, key, err)
	}
	if _, again := p.Values[key]; again {
		p.Repeated = append(p.Repeated, key)
	}
	p.Values[key], p.Lines[key] = value, line
	return nil
}

// joinLine returns the logical line that begins at lines[i], and the index after it.
func joinLine(lines []string, i int) (string, int) {
	line := trimLeft(lines[i])
	if line == "" || line[0] == '#' || line[0] == '!' || !continues(line) {
		return line, i + 1
	}
	var b strings.Builder
	for continues(line) {
		b.WriteString(line[:len(line)-1])
		if i++; i == len(lines) {
			return b.String(), i
		}
		line = trimLeft(lines[i])
	}
	b.WriteString(line)
	return b.String(), i + 1
}

func normalizeNewlines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\f' }

func trimLeft(s string) string { return strings.TrimLeft(s, " \t\f") }

// continues says whether a line ends in an odd number of backslashes.
func continues(line string) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// splitPair cuts a line after its key: at the first "=", ":" or white space that is not escaped.
func splitPair(line string) (key, value string) {
	end := 0
	for end < len(line) && line[end] != '=' && line[end] != ':' && !isSpace(line[end]) {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(line))
	value = trimLeft(line[end:])
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = trimLeft(value[1:])
	}
	return line[:end], value
}

func asUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, n, err := unicodeEscape(s[i-1:])
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			i += n - 2
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// unicodeEscape reads \uXXXX, or two of them that are a surrogate pair, and returns the length read.
func unicodeEscape(s string) (r rune, n int, err error) {
	r, err = hex4(s)
	if err != nil || !utf16.IsSurrogate(r) {
		return r, 6, err
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		low, err := hex4(s[6:])
		if err != nil {
			return 0, 0, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12, nil
		}
	}
	return utf8.RuneError, 6, nil
}

func hex4(s string) (rune, error) {
	if len(s) < 6 {
		return 0, fmt.Errorf(`%q must be \u and four hexadecimal digits`, s)
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, fmt.Errorf(`%q must be \u and four hexadecimal digits`, s[:6])
		}
		r = r<<4 | rune(c)
	}
	return r, nil
}
