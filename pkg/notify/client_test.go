// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

func TestSendFollowsRedirectsToTheSameServerOnly(t *testing.T) {
	other := tlsHook(t, nil)
	for _, tc := range []struct {
		reason   string
		redirect func(h *hook) string // where the path / redirects to
		code     int
		want     string
		requests string
	}{
		{"to another path", func(*hook) string { return "/next" }, 307, "", "POST /\nPOST /next\n"},
		{"for good", func(h *hook) string { return h.URL + "/next" }, 308, "", "POST /\nPOST /next\n"},
		{"three times", func(*hook) string { return "/3" }, 307, "", "POST /\nPOST /3\nPOST /2\nPOST /1\n"},
		{
			"more than three times",
			func(*hook) string { return "/4" }, 307, "the receiver redirects more than 3 times", "POST /\nPOST /4\nPOST /3\nPOST /2\n",
		},
		{"in circles", func(*hook) string { return "/" }, 307, "the receiver redirects more than 3 times", "POST /\nPOST /\nPOST /\nPOST /\n"},
		{"as a GET", func(*hook) string { return "/next" }, 302, "the receiver redirects with 302 Found: only 307 and 308 are followed", "POST /\n"},
		{"as a GET, by name", func(*hook) string { return "/next" }, 303, "the receiver redirects with 303 See Other: only 307 and 308 are followed", "POST /\n"},
		{"for good, as a GET", func(*hook) string { return "/next" }, 301, "the receiver redirects with 301 Moved Permanently: only 307 and 308 are followed", "POST /\n"},
		{"to another server", func(*hook) string { return other.URL }, 307, "the receiver redirects to another server, which is not followed", "POST /\n"},
		{
			"to another name of the server",
			func(h *hook) string { return strings.Replace(h.URL, "127.0.0.1", "localhost", 1) },
			308, "the receiver redirects to another server, which is not followed", "POST /\n",
		},
		{
			"to http", func(h *hook) string { return strings.Replace(h.URL, "https", "http", 1) },
			307, "the receiver redirects to another server, which is not followed", "POST /\n",
		},
		{
			"as somebody else", func(h *hook) string { return strings.Replace(h.URL, "//", "//user:"+marker+"@", 1) },
			307, "the receiver redirects to another server, which is not followed", "POST /\n",
		},
		{"to nonsense", func(*hook) string { return "https://" + marker + ":%zz" }, 307, "the request failed", "POST /\n"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h := tlsHook(t, nil)
			next := map[string]string{"/": tc.redirect(h), "/4": "/3", "/3": "/2", "/2": "/1"}
			h.answer = func(w http.ResponseWriter, r *http.Request) {
				if location := next[r.URL.Path]; location != "" {
					w.Header().Set("Location", location)
					w.WriteHeader(tc.code)
				}
			}
			target := Target{URL: h.URL + "/", Headers: map[string]string{"Authorization": marker, "X-Token": marker}, CA: append(h.ca(), other.ca()...)}
			e := secretEvent(t)
			err := newSender().Send(t.Context(), target, e)
			if tc.want != "" {
				expectFailure(t, err, tc.want)
			} else if err != nil {
				t.Error(err)
			}
			if got := paths(h.received()); got != tc.requests {
				t.Errorf("the receiver got\n%swant\n%s", got, tc.requests)
			}
			body, _, _ := encode(e)
			for _, r := range h.received() {
				if !bytes.Equal(r.body, body) || r.header.Get("Authorization") != marker || r.header.Get("X-Token") != marker || r.header.Get("Referer") != "" {
					t.Errorf("%s got headers %v and body %s", r.path, r.header, r.body)
				}
			}
		})
	}
	if got := len(other.received()); got > 0 {
		t.Errorf("another server got %d requests", got)
	}
}
