/** A piece of the list of objects, of a `ListObjectsV2` answer. */
export interface S3List {
  readonly keys: readonly string[];
  /** Where the next piece begins; null at the end. */
  readonly token: string | null;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/**
 * Reads the two kinds of elements that matter. Names of pages need no escapes in XML, tokens may.
 *
 * @returns null when it is no such answer
 */
export function readS3List(xml: string): S3List | null {
  if (!/<ListBucketResult[\s>]/.test(xml)) return null;
  const keys = [...xml.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => unescapeXml(key));
  const truncated = /<IsTruncated>\s*true\s*<\/IsTruncated>/.test(xml);
  const token = /<NextContinuationToken>([^<]*)<\/NextContinuationToken>/.exec(xml)?.[1];
  if (truncated && token === undefined) return null;
  return { keys, token: truncated && token !== undefined ? unescapeXml(token) : null };
}

const unescapeXml = (text: string) =>
  text.replaceAll(/&(?:(amp|lt|gt|quot|apos)|#(\d+)|#x([0-9a-fA-F]+));/g, (_all, name, decimal, hex) =>
    name === undefined ? String.fromCodePoint(Number.parseInt(decimal ?? hex, decimal === undefined ? 16 : 10)) : ENTITIES[name],
  );
