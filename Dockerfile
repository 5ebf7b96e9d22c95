# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

# The operator's image: the one program and nothing else, no shell and no package manager. Built by `make image`.

# Go compiles for all processors by itself: the compiler runs on that of the builder, emulated is nothing.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY pkg pkg
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=devel
# The validated module of Go's cryptography, in FIPS mode, for clusters that need it, and on all others too: so there is one thing to test.
ARG GOFIPS140=v1.0.0
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOFIPS140=$GOFIPS140 \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /manager ./cmd/manager

# Distroless has certificates, a user that is not root, and nothing to keep up to date but these; UBI micro would add a shell and a C library, which
# a static program has no use for. Pinned by tag: a release pins it by the digest of its day, see docs/install.md.
FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION=devel
LABEL org.opencontainers.image.title="managed-upgrade-operator" \
      org.opencontainers.image.description="Upgrades OpenShift clusters unattended, in their maintenance windows" \
      org.opencontainers.image.source="https://github.com/appuio/managed-upgrade-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      name="managed-upgrade-operator" \
      summary="Upgrades OpenShift clusters unattended, in their maintenance windows" \
      description="Upgrades OpenShift clusters unattended, in their maintenance windows" \
      io.k8s.display-name="Managed Upgrade Operator" \
      version="$VERSION" \
      vendor="The managed-upgrade-operator authors" \
      release="1"
COPY LICENSE /licenses/LICENSE
COPY --from=build /manager /manager
# A number, so that runAsNonRoot can be verified.
USER 65532:65532
ENTRYPOINT ["/manager"]
