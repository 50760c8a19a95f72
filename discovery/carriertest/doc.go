// Package carriertest says what every discovery.Carrier must do, as tests, and
// has a hostile one for the tests of whoever reads from a carrier. Only tests
// import it.
package carriertest
