/** Attributes of an element. Numbers are rounded to hundredths, as no screen shows more. */
export type Attributes = Readonly<Record<string, string | number>>;

/** Makes an element of SVG. `children` are elements; text goes through `svgText`. */
export function svgElement(name: string, attributes: Attributes, ...children: readonly string[]): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(attributeText(value))}"`);
  const open = `<${name}${written.join('')}`;
  return children.length === 0 ? `${open}/>` : `${open}>${children.join('')}</${name}>`;
}

/** A line of text. */
export function svgText(x: number, y: number, text: string, attributes: Attributes = {}): string {
  return svgElement('text', { x, y, ...attributes }, escaped(text));
}

/** A whole picture with a background, in a font that every machine has. Sizes are in pixels. */
export function svgPicture(width: number, height: number, title: string, parts: readonly string[]): string {
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'font-family': 'system-ui, "DejaVu Sans", Arial, sans-serif',
    'font-size': 13,
    fill: INK,
  };
  const background = svgElement('rect', { width, height, fill: 'white' });
  return `${svgElement('svg', attributes, svgElement('title', {}, escaped(title)), background, ...parts)}\n`;
}

/** Colours that can be told apart, also by those who see red and green alike; used in turn. */
export const PALETTE: readonly string[] = [
  '#0072b2',
  '#e69f00',
  '#009e73',
  '#cc79a7',
  '#56b4e9',
  '#d55e00',
  '#8c8c8c',
  '#f0e442',
];
export const INK = '#1a1a1a';
export const FAINT = '#d9d9d9';
export const QUIET = '#595959';

/** Small squares in the colours of the palette, each with a name, one below the other. */
export function legend(x: number, y: number, names: readonly string[]): string[] {
  return names.flatMap((name, index) => [
    svgElement('rect', { x, y: y + index * LEGEND_STEP, width: 12, height: 12, fill: PALETTE[index % PALETTE.length] }),
    svgText(x + 20, y + 10 + index * LEGEND_STEP, name),
  ]);
}

/** Pixels from one line of a legend to the next. */
export const LEGEND_STEP = 20;

function attributeText(value: string | number): string {
  return typeof value === 'number' ? String(Math.round(value * 100) / 100) : value;
}

/** Text as it stands in XML and HTML, also within quotes. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
