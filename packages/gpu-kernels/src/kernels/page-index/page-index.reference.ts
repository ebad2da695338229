import type { PageIndexSection, PageIndexSource } from './page-index.ts';

/**
 * What the page-index kernel computes, in plain TypeScript: the table of one section.
 *
 * @returns `[numRequests, blocks * expansion]`, -1 where there is no page
 */
export function pageIndexReference(numRequests: number, source: PageIndexSource, section: PageIndexSection): Int32Array {
  const { blocks, slotIds, scratch } = source;
  const { scale, expansion, layerOffset, scratchPagesPerBlock, rankInLayer } = section;
  const table = new Int32Array(numRequests * blocks * expansion);
  for (let request = 0; request < numRequests; request++) {
    const own = scratch?.[request];
    for (let block = 0; block < blocks; block++) {
      const row = request * blocks + block;
      const isScratch = own && block >= own.range.begin && block < own.range.end;
      // Which sub-page of the scratch slots, laid end to end.
      const linear = isScratch ? (block - own.range.begin) * scratchPagesPerBlock + rankInLayer : 0;
      const slot = isScratch ? own.slotIds[Math.floor(linear / scale)] : slotIds[row];
      const subPage = slot * scale + (isScratch ? linear % scale : layerOffset);
      for (let page = 0; page < expansion; page++) table[row * expansion + page] = slot < 0 ? -1 : subPage * expansion + page;
    }
  }
  return table;
}
