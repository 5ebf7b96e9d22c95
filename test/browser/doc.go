// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package browser opens the reports of `oc managed-upgrade status -o html` in Chromium, and looks at what is to be seen: pixels, where the
// timeline has its bars. The reports are those of pkg/cli/testdata/report, which a test there keeps as they are written now.
//
// The tests need a browser, so they have the build tag browser, and `make test-browser` runs them: it installs Debian's Chromium where there is none.
package browser
