// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package muo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// maxMinutes is a year, which is what durations of ours allow.
const maxMinutes = 365 * 24 * 60

// reader reads the text of a ConfigMap key by key, and collects what is wrong with it.
type reader struct {
	text     string
	values   map[string]any
	notes    []string
	problems []string
}

func newReader(text string) (*reader, error) {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("not valid YAML: %s", strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "yaml: ", "")), " "))
	}
	r := &reader{text: text}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&r.values); err != nil {
		return nil, errors.New("must consist of keys and values")
	}
	return r, nil
}

// root reads the topmost keys.
func (r *reader) root(read func(section)) {
	s := section{reader: r, values: r.values}
	read(s)
	s.rest()
}

// err is what is wrong with what was read.
func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(r.problems, "; "))
}

// section is a part of the text: keys below one key. What was read of it is taken out.
type section struct {
	*reader
	keys   []string
	values map[string]any
}

// take returns the value of a key, and false if there is none.
func (s section) take(key string) (any, bool) {
	value := s.values[key]
	delete(s.values, key)
	return value, value != nil
}

func (s section) problem(key, format string, args ...any) {
	s.problems = append(s.problems, s.place(key)+" "+fmt.Sprintf(format, args...))
}

// place names a key with its line, if that can be found: in the usual style, in which each key has a line of its own.
func (s section) place(key string) string {
	keys := append(slices.Clone(s.keys), key)
	name := strings.Join(keys, ".")
	if line := lineOf(s.text, keys); line > 0 {
		return fmt.Sprintf("%s (line %d)", name, line)
	}
	return name
}

func lineOf(text string, keys []string) int {
	found, indent := 0, -1
	for number, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		deep := len(line) - len(trimmed)
		switch {
		case trimmed == "" || trimmed[0] == '#':
		case found > 0 && deep <= indent: // behind what is below the key that was found last
			return 0
		case strings.HasPrefix(trimmed, keys[found]+":") && (found > 0 || deep == 0):
			if found++; found == len(keys) {
				return number + 1
			}
			indent = deep
		}
	}
	return 0
}

// rest notes the keys that nobody has read.
func (s section) rest() {
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		if s.values[key] != nil {
			s.notes = append(s.notes, s.place(key)+" is not known")
		}
	}
}

// within reads the keys below a key.
func (s section) within(key string, read func(section)) {
	below := section{reader: s.reader, keys: append(slices.Clone(s.keys), key), values: map[string]any{}}
	if value, ok := s.take(key); ok {
		values, isMap := value.(map[string]any)
		if !isMap {
			s.problem(key, "must consist of keys and values")
			return
		}
		below.values = values
	}
	read(below)
	below.rest()
}

// number reads a whole number of at least least, and at most most unless that is zero.
func (s section) number(key string, least, most int64, set func(int64)) {
	value, ok := s.take(key)
	if !ok {
		return
	}
	text, isNumber := value.(json.Number)
	n, err := text.Int64()
	switch {
	case !isNumber || err != nil:
		s.problem(key, "must be a whole number, not %s", quote(value))
	case n < least:
		s.problem(key, "must be at least %d, not %d", least, n)
	case most > 0 && n > most:
		s.problem(key, "must be at most %d, not %d", most, n)
	default:
		set(n)
	}
}

func (s section) minutes(key string, least int64, to *time.Duration) {
	s.number(key, least, maxMinutes, func(n int64) { *to = time.Duration(n) * time.Minute })
}

func (s section) flag(key string, to *bool) {
	if value, ok := s.take(key); ok {
		if *to, ok = value.(bool); !ok {
			s.problem(key, "must be true or false, not %s", quote(value))
		}
	}
}

func (s section) word(key string, to *string) {
	if value, ok := s.take(key); ok {
		if *to, ok = value.(string); !ok {
			s.problem(key, "must be a text, not %s", quote(value))
		}
	}
}

// words reads a list of texts, each of which passes the check. What stands there twice is taken once.
func (s section) words(key string, to *[]string, check func(string) error) {
	value, ok := s.take(key)
	if !ok {
		return
	}
	list, ok := value.([]any)
	if !ok {
		s.problem(key, "must be a list of texts, not %s", quote(value))
		return
	}
	for _, item := range list {
		word, isText := item.(string)
		switch {
		case !isText || word == "":
			s.problem(key, "must be a list of texts; %s is none", quote(item))
		case check != nil && check(word) != nil:
			s.problem(key, "cannot be used: %v", check(word))
		case !slices.Contains(*to, word):
			*to = append(*to, word)
		}
	}
}

// strict reads something of ours, without keys that it does not have.
func (s section) strict(key string, to any) {
	value, ok := s.take(key)
	if !ok {
		return
	}
	data, err := json.Marshal(value)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(to)
	}
	if err != nil {
		s.problem(key, "cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
}

func quote(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

func isGlob(word string) error {
	if _, err := path.Match(word, ""); err != nil {
		return fmt.Errorf("%q is no glob pattern", word)
	}
	return nil
}

// maxPatternSize bounds how large a regular expression is compiled, in instructions, as NodeForceDrain does.
const maxPatternSize = 1000

func isPattern(word string) error {
	parsed, err := syntax.Parse(word, syntax.Perl)
	if err != nil {
		return fmt.Errorf("%q is no regular expression", word)
	}
	if program, err := syntax.Compile(parsed.Simplify()); err != nil || len(program.Inst) > maxPatternSize {
		return fmt.Errorf("%q is too large a regular expression", word)
	}
	return nil
}

func isURL(word string) error {
	u, err := url.Parse(word)
	switch {
	case err == nil && u.User != nil: // which nobody shall read in the message
		return errors.New("an URL has a user or password")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return errors.New("an URL is none of http or https")
	}
	return nil
}
