/** Whether who asks would rather have a page than JSON, as browsers do. Without a preference it is JSON. @param accept the header `accept` */
export function prefersHtml(accept: string | undefined): boolean {
  return weightOf(accept, 'text/html') > weightOf(accept, 'application/json');
}

/** How much a type is wanted, 0 to 1: of the entry that says most about it. */
function weightOf(accept: string | undefined, type: string): number {
  const entries = (accept ?? '').split(',').map((entry) => entry.split(';').map((part) => part.trim().toLowerCase()));
  for (const range of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const found = entries.find(([name]) => name === range);
    if (found === undefined) continue;
    const weight = Number(found.find((part) => part.startsWith('q='))?.slice(2) ?? 1);
    return weight >= 0 && weight <= 1 ? weight : 0;
  }
  return 0;
}
