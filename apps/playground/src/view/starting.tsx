/** What is going on before the first engine is there. */
export function Starting({ what, share }: { what: string; share: number }) {
  return (
    <main class="centre">
      <div class="card starting">
        <h2>{what}</h2>
        <progress max={1} value={share} aria-label="Loading">
          {Math.round(100 * share)}%
        </progress>
        <p class="quiet">
          A small hybrid model (six layers, 1.2 million weights, trained on Moby-Dick) is on its way into this browser. It is
          served from here: nothing you type leaves this page.
        </p>
      </div>
    </main>
  );
}
