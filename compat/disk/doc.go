// Package disk proves bad days: a full disk, which must cost nothing but the writes that find no room and heal by
// itself, and starts that must be refused with a message that names what is wrong, where, and what to do.
package disk
