# The image holds one static binary and CA certificates: no shell, no git.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /fleetling ./agent/cmd/fleetling

FROM gcr.io/distroless/static:nonroot
COPY --from=build /fleetling /fleetling
USER 65532:65532
ENTRYPOINT ["/fleetling"]
