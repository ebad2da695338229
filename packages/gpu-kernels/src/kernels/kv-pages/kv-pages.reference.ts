/** `PagePlaces` with plain arrays: `table` `[numRequests, tableStride]`. */
export interface ReferencePlaces {
  table: ArrayLike<number>;
  tableStride: number;
  tokensPerPage: number;
  pageStrideWords: number;
  baseWords?: number;
}

/** `KvPages` with plain arrays. */
export interface ReferencePages extends ReferencePlaces {
  /** Numbers as they are stored, in units of the scale of their page where there are scales. */
  pool: ArrayLike<number>;
  /** 1 for f32, 2 for f16, 4 for int8. Default 1. */
  numbersPerWord?: number;
  rowStrideWords?: number;
  scales?: ReferenceScales;
}

/** `KvScales` with plain arrays. */
export interface ReferenceScales extends ReferencePlaces {
  pool: ArrayLike<number>;
  headsPerScale?: number;
}

/** The first stored number of a token's row of `rowNumbers`; undefined where the request has no page. */
export function numberAt(pages: ReferencePages, rowNumbers: number, request: number, token: number): number | undefined {
  const { numbersPerWord = 1, rowStrideWords = rowNumbers / numbersPerWord, tokensPerPage } = pages;
  const word = wordAt(pages, request, token, token % tokensPerPage, rowStrideWords);
  return word === undefined ? undefined : word * numbersPerWord;
}

/** The place in `pages.scales.pool` of a token and head; undefined where the request has no page of scales. */
export function scaleAt(
  { scales, tokensPerPage }: ReferencePages & { scales: ReferenceScales },
  numKvHeads: number,
  request: number,
  token: number,
  head: number,
): number | undefined {
  const { headsPerScale = 1 } = scales;
  const row = Math.floor((token % scales.tokensPerPage) / tokensPerPage);
  const word = wordAt(scales, request, token, row, numKvHeads / headsPerScale);
  return word === undefined ? undefined : word + Math.floor(head / headsPerScale);
}

function wordAt(places: ReferencePlaces, request: number, token: number, row: number, strideWords: number): number | undefined {
  const { table, tableStride, tokensPerPage, pageStrideWords, baseWords = 0 } = places;
  const column = Math.floor(token / tokensPerPage);
  const page = column < tableStride ? table[request * tableStride + column] : -1;
  return page < 0 ? undefined : baseWords + page * pageStrideWords + row * strideWords;
}
