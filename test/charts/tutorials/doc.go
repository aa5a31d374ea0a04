// Package tutorials tests what the charts of the kinds Experimental, VmGroup,
// Config and Addon render.
package tutorials
