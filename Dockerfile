# The image of cronlatch: one static binary on Alpine. Jobs of the kind `run:` need a shell, and commands are seldom happy
# without a few tools, so the image is not an empty one; add what your jobs need in an image of your own that starts
# FROM it. tini is process 1: it passes signals on to the daemon alone and reaps what is left when a supervisor dies. With
# -s it does so below another init process too (docker run --init, init: true).
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=${VERSION}" -o /out/cronlatch ./cmd/cronlatch

FROM alpine:3.22
RUN apk add --no-cache ca-certificates tini \
	&& adduser -D -u 10001 -h /srv/cronlatch cronlatch
COPY --from=build /out/cronlatch /usr/local/bin/cronlatch
COPY --chown=10001:10001 configs/sample/ /srv/cronlatch/
# A named volume that is mounted here takes its owner from this folder.
RUN install -d -o 10001 -g 10001 /srv/cronlatch/reports

USER 10001:10001
WORKDIR /srv/cronlatch
# The listener is on loopback inside the container, so the check runs inside too.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["cronlatch", "health"]
ENTRYPOINT ["/sbin/tini", "-s", "--", "cronlatch"]
CMD ["serve"]
