// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"slices"
	"testing"
)

// writeSmall writes the upper part of a picture with its 128 most frequent colours, which is a third of the size.
func writeSmall(t *testing.T, path string, picture image.Image, height int) {
	t.Helper()
	bounds := picture.Bounds()
	bounds.Max.Y = min(bounds.Max.Y, height)
	counts := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	frequent := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		frequent = append(frequent, c)
	}
	slices.SortFunc(frequent, func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range frequent[:min(len(frequent), 128)] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(image.Rect(0, 0, bounds.Dx(), bounds.Dy()), palette)
	draw.Draw(small, small.Bounds(), picture, bounds.Min, draw.Src)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(file, small); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
