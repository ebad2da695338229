import { type BlockRange, matchNeeds } from '@bufferwise/core-policy';
import type { PrefixGroup } from './prefix-info.ts';

/** What of a group is in a prefix of so many tokens: what it needs to continue there. With 0 tokens nothing. */
export function prefixGroup(
  group: Omit<PrefixGroup, 'ranges' | 'numPages'>,
  numTokens: number,
  tokensPerBlock: number,
): PrefixGroup {
  const { lifecycle, layerIds, pageBytes, arrangement, form } = group;
  const ranges = rangesOf(lifecycle, numTokens, tokensPerBlock).filter(({ begin, end }) => end > begin);
  const numPages = ranges.reduce((sum, { begin, end }) => sum + (end - begin), 0);
  return { lifecycle, layerIds, pageBytes, arrangement, form, ranges, numPages };
}

export function totalsOf(groups: readonly PrefixGroup[]): { numPages: number; pageBytes: number } {
  return {
    numPages: groups.reduce((sum, { numPages }) => sum + numPages, 0),
    pageBytes: groups.reduce((sum, { numPages, pageBytes }) => sum + numPages * pageBytes, 0),
  };
}

/** The pages of a file in their order. */
export function* pagesOf(groups: readonly PrefixGroup[]): Generator<{ readonly group: number; readonly block: number }> {
  for (const [group, { ranges }] of groups.entries())
    for (const { begin, end } of ranges) for (let block = begin; block < end; block++) yield { group, block };
}

/** What a page is sealed under: nobody takes it for another one, or for one of another file. */
export function sealName(key: string, { group, block }: { readonly group: number; readonly block: number }): string {
  return `${key}.${group}.${block}`;
}

function rangesOf(lifecycle: PrefixGroup['lifecycle'], numTokens: number, tokensPerBlock: number): readonly BlockRange[] {
  if (numTokens === 0) return [];
  const needs = matchNeeds(lifecycle, numTokens, tokensPerBlock);
  if (needs.kind === 'snapshot') return [{ begin: needs.blockOrdinal, end: needs.blockOrdinal + 1 }];
  return [needs.sinks, needs.window];
}
