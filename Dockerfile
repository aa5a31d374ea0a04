# Built where it is built, for where it will run: Go needs no emulation to cross-compile.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
ARG COMMIT
WORKDIR /src

# Modules before sources: they change less often, so this layer is mostly there already.
COPY go.mod go.sum ./
RUN go mod download

COPY . .
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath \
    -ldflags "-s -w -X github.com/chartwright/chartwright/internal/version.Version=${VERSION} -X github.com/chartwright/chartwright/internal/version.Commit=${COMMIT}" \
    -o /chartwright ./cmd/chartwright

# No shell and no packages: one static binary, with the charts in it. An image with other charts is made
# FROM this one, by COPY of watches.yaml and charts/ into the working folder.
FROM gcr.io/distroless/static:nonroot
COPY --from=build /chartwright /chartwright
WORKDIR /opt/chartwright
USER 65532:65532
ENTRYPOINT ["/chartwright"]
CMD ["run"]
