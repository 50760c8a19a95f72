// Package endpoint finds the address at which the API server answers, in a
// cluster that may have neither kube-proxy nor DNS yet.
//
//	hints -> Candidates, in order -> all are asked at once -> the first in order that answers
//
// An address of a hint is no trust: each is asked over TLS with the authority of
// the service account, and what does not prove itself by that does not answer.
package endpoint
