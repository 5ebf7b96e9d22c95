// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// parseURL explains what is wrong with an URL. It never repeats it: it may be a secret.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(address)) // a Secret made from a file ends with a line break
	switch {
	case err != nil:
		return nil, failf("the URL cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, failf("the URL does not begin with http:// or https://")
	case u.Hostname() == "":
		return nil, failf("the URL has no host")
	case u.User != nil:
		return nil, failf("the URL contains a user or a password: put the header Authorization into the Secret of headersFrom")
	}
	return u, nil
}

// parseHeaders explains what is wrong with headers that are to be sent along. It repeats their names only.
func parseHeaders(headers map[string]string, address *url.URL) (http.Header, error) {
	parsed := http.Header{}
	if len(headers) > 0 && address.Scheme != "https" {
		return nil, failf("headers are sent over https only: use an https URL, or no headersFrom")
	}
	for name, value := range headers {
		value = strings.TrimSpace(value)
		switch canonical := http.CanonicalHeaderKey(name); {
		case !validName(name):
			return nil, failf("%q is not the name of a header", shorten(name))
		case forbidden(canonical):
			return nil, failf("the header %q cannot be chosen: remove it from the Secret of headersFrom", shorten(name))
		case !validValue(value):
			return nil, failf("the value of the header %q has a line break or another character that no header may have", shorten(name))
		case parsed[canonical] != nil:
			return nil, failf("the header %q is in the Secret of headersFrom more than once", shorten(canonical))
		default:
			parsed[canonical] = []string{value}
		}
	}
	return parsed, nil
}

// forbidden tells whether a header belongs to the connection or to the event, not to whoever configures a receiver.
func forbidden(canonical string) bool {
	return strings.HasPrefix(canonical, "Content-") || strings.HasPrefix(canonical, "Proxy-") ||
		slices.Contains([]string{
			"Host", "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Http2-Settings",
		}, canonical)
}

// validName tells whether the name is a token, as RFC 9110 calls it.
func validName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		letter := (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9')
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// validValue tells whether the value has no control characters in it.
func validValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return (r < ' ' && r != '\t') || r == 0x7f })
}
