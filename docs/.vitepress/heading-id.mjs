/** The id that a heading has on the site: as viewers of repositories have it, so that links to places work in both. */
export function headingId(heading) {
  return heading
    .replaceAll(/[`*]|\[([^\]]*)\]\([^)]*\)/g, '$1')
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}
