# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

# Code generated from deploy/ by boilerplate/bundle. DO NOT EDIT.

# The catalogue as an image: docker build -f deploy/catalog/catalog.Dockerfile deploy/catalog
FROM quay.io/operator-framework/opm:v1.65.0
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
COPY configs /configs
RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]
LABEL operators.operatorframework.io.index.configs.v1=/configs
