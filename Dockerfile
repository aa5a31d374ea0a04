# The image contains one static binary and nothing else: no base image that must be pinned, updated and trusted,
# no shell and no packages. "make docker-build" compiles the binary before, with the Go toolchain that go.mod
# names; the go command checks toolchain and modules against the checksum database. The operator needs no other
# file: it verifies the API server by the CA of its service account, and registries by the CA certificates in the
# binary. "make image" builds the same image without Docker.
#
# To serve other charts, build an image FROM this one and COPY watches.yaml and charts/ into the working folder.
FROM scratch
ARG TARGETOS
ARG TARGETARCH
COPY dist/${TARGETOS}-${TARGETARCH}/chartwright /chartwright
WORKDIR /opt/chartwright
USER 65532:65532
ENTRYPOINT ["/chartwright"]
CMD ["run"]
