/** Source code with colours, which come after the text. */

import { Fragment, type ReactNode, useEffect, useState } from "react";
import type { Highlighted } from "./colours";

type Painter = (text: string, language: string) => Highlighted | null;

let painter: Painter | null = null;
let loading: Promise<void> | null = null;
const MAX_PAINTED = 60_000;

function loadPainter(): Promise<void> {
  loading ??= import("./colours").then((module) => {
    painter = module.paint;
  });
  return loading;
}

interface Props {
  text: string;
  language: string | null;
}

export function Code({ text, language }: Props) {
  return (
    // A region that scrolls has to be reached by the keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className="code" tabIndex={0}>
      <code>
        <Painted text={text} language={language} />
      </code>
    </pre>
  );
}

/** The coloured text without a frame. */
export function Painted({ text, language }: Props) {
  const wanted = language !== null && text.length <= MAX_PAINTED;
  const [ready, setReady] = useState(painter !== null);
  useEffect(() => {
    if (!wanted || ready) return;
    let here = true;
    void loadPainter().then(() => {
      if (here) setReady(true);
    });
    return () => {
      here = false;
    };
  }, [wanted, ready]);
  const tree = wanted && ready ? (painter?.(text, language) ?? null) : null;
  return <>{tree === null ? text : tree.map(renderNode)}</>;
}

function renderNode(node: Highlighted[number], place: number): ReactNode {
  if (typeof node === "string") return <Fragment key={place}>{node}</Fragment>;
  return (
    <span key={place} className={node.name}>
      {node.children.map(renderNode)}
    </span>
  );
}
