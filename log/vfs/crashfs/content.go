package crashfs

import "io"

const pageSize = 4096

// page is a piece of a file. Once shared it never changes.
type page struct {
	b      [pageSize]byte
	shared bool
}

// share marks p immutable. It writes only on a change, since a clone may be reading the mark.
func (p *page) share() *page {
	if p != nil && !p.shared {
		p.shared = true
	}
	return p
}

// content is the bytes of a file: a nil page is zeros, and so are the bytes of the last page beyond size.
type content struct {
	pages []*page
	size  int64
}

func pagesFor(size int64) int { return int((size + pageSize - 1) / pageSize) }

func (c *content) readAt(p []byte, off int64) (int, error) {
	if off >= c.size {
		return 0, io.EOF
	}
	want := len(p)
	p = p[:min(int64(want), c.size-off)]
	for n := 0; n < len(p); {
		i, at := int((off+int64(n))/pageSize), int((off+int64(n))%pageSize)
		part := p[n:min(len(p), n+pageSize-at)]
		if pg := c.pages[i]; pg != nil {
			copy(part, pg.b[at:])
		} else {
			clear(part)
		}
		n += len(part)
	}
	if len(p) < want {
		return len(p), io.EOF
	}
	return len(p), nil
}

// resize sets the size, with the page table to fit and zeros beyond the end.
func (c *content) resize(size int64) {
	n := pagesFor(size)
	for len(c.pages) < n {
		c.pages = append(c.pages, nil)
	}
	clear(c.pages[n:])
	c.pages = c.pages[:n]
	if at := int(size % pageSize); at != 0 && size < c.size && c.pages[n-1] != nil {
		clear(c.writable(n - 1).b[at:])
	}
	c.size = size
}

// writable returns page i, made or copied if needed.
func (c *content) writable(i int) *page {
	old := c.pages[i]
	if old != nil && !old.shared {
		return old
	}
	fresh := new(page)
	if old != nil {
		fresh.b = old.b
	}
	c.pages[i] = fresh
	return fresh
}

// clone returns an independent content on the same pages.
func (c *content) clone() content {
	pages := make([]*page, len(c.pages))
	for i, p := range c.pages {
		pages[i] = p.share()
	}
	return content{pages: pages, size: c.size}
}
