"""The words that decision records use for their states, fields and sections, in the languages seen.

What belongs here: vocabulary alone. How it is looked for is decided where it is used.
"""

from __future__ import annotations

from typing import Final

from concordance.models import AdrStatus


def _all(words: str) -> frozenset[str]:
    """The words of a text, `_` standing for a space."""
    return frozenset(word.replace("_", " ") for word in words.split())


# A later step of a record's life first: a list of steps ends with the furthest.
STATUSES: Final[dict[AdrStatus, frozenset[str]]] = {
    AdrStatus.SUPERSEDED: _all(
        """superseded superceded superseeded replaced supplanted
        ersetzt abgelöst überholt remplacé remplacée reemplazado reemplazada sustituido sustituida
        substituído substituída sostituito sostituita vervangen zastąpione заменено
        已取代 已被取代 被取代 已替代 置換 置き換え 대체됨"""
    ),
    AdrStatus.DEPRECATED: _all(
        """deprecated obsolete obsoleted retired reverted revoked rescinded inactive outdated
        expired archived
        veraltet obsolète déprécié dépréciée obsoleto obsoleta depreciado descontinuado deprecato
        verouderd устарело 已弃用 已废弃 廃止 非推奨 폐기됨"""
    ),
    AdrStatus.REJECTED: _all(
        """rejected declined denied refused withdrawn abandoned cancelled canceled dropped discarded
        vetoed
        abgelehnt verworfen zurückgezogen rejeté rejetée refusé rechazado rechazada rejeitado
        rejeitada rifiutato rifiutata afgewezen odrzucone отклонено 已拒绝 拒绝 却下 거부됨"""
    ),
    AdrStatus.ACCEPTED: _all(
        """accepted accept approved agreed adopted decided ratified final active implemented done
        completed confirmed enforced
        akzeptiert angenommen beschlossen genehmigt entschieden accepté acceptée adopté
        adoptée approuvé validé aceptado aceptada aprobado aprobada aceito aceita aprovado aprovada
        accettato accettata approvato geaccepteerd goedgekeurd zaakceptowane przyjęte принято
        已接受 接受 已采纳 采纳 已通过 承認 採用 承認済み 수락됨 승인됨"""
    ),
    AdrStatus.PROPOSED: _all(
        """proposed proposal propose suggested
        draft drafted wip pending in-progress in-review under-review
        in-discussion under-discussion rfc review vorgeschlagen entwurf vorschlag proposé proposée
        brouillon propuesto propuesta borrador proposto proposta rascunho bozza voorgesteld concept
        propozycja предложено черновик 提议 提议中 草案 提案 提案中 제안됨"""
    ),
}

MONTHS: Final[tuple[frozenset[str], ...]] = (
    _all("january jan januar janvier enero janeiro"),
    _all("february feb februar février febrero fevereiro"),
    _all("march mar märz mars marzo março"),
    _all("april apr avril abril"),
    _all("may mai mayo maio"),
    _all("june jun juni juin junio junho"),
    _all("july jul juli juillet julio julho"),
    _all("august aug août agosto"),
    _all("september sep sept septembre septiembre setembro"),
    _all("october oct oktober okt octobre octubre outubro"),
    _all("november nov novembre noviembre novembro"),
    _all("december dec dezember dez décembre diciembre dezembro"),
)

FIELDS: Final[dict[str, frozenset[str]]] = {
    "status": _all(
        """status state adr_status decision_status current_status statut estado estatus stato
        状态 ステータス 상태"""
    ),
    "date": _all(
        """date decision_date date_of_decision decided decided_on datum fecha data
        日期 日付 날짜"""
    ),
    "updated": _all(
        """updated last_updated last_modified created date_created creation_date accepted_on
        erstellt start_date revdate"""
    ),
    "deciders": _all(
        """deciders decider decision_makers decision_maker decided_by approvers approved_by
        entscheider décideurs decisores 决策者 決定者"""
    ),
    "supersedes": _all(
        "supersedes supercedes replaces obsoletes ersetzt remplace reemplaza substitui"
    ),
    "superseded_by": _all(
        """superseded_by superceded_by replaced_by obsoleted_by ersetzt_durch
        remplacé_par reemplazado_por substituído_por"""
    ),
    "superseded": _all("superseded"),
}
"""Names of fields by what they hold; `updated` is a date that counts where there is no other.

`superseded` may hold anything: a record, a day, a reason, or yes.
"""

INDEX_HEADS: Final = _all(
    "adr adrs id nr no number # title name decision record link file dokument entscheidung"
)
"""A table whose first column is called so lists other records."""

LINK_SECTIONS: Final = _all(
    """links link related references relations more_information related_decisions see_also history
    related_adrs verweise"""
)
META_SECTIONS: Final = _all("metadata meta info information details adr_details")

ABOUT_ITSELF: Final = _all(
    """this the our it its that one decision decisions adr adrs record document proposal rfc was is
    are has have been got now then later since meanwhile subsequently eventually afterwards finally
    fully completely entirely also already formally officially status state changed to note update
    hence therefore on in as of here see today
    dieser diese dieses entscheidung wurde wird ist inzwischen später nun
    cette décision a été est esta decisión ha sido fue es foi é decisão
    superseded accepted approved deprecated rejected proposed obsolete retired draft"""
)
"""A clause of these words before a verb speaks of the record itself, and of what is the case."""

NOTHING: Final = _all(
    """none nothing nobody n/a na tbd no yes true false nil null kein keine keiner this it unknown
    pending never no_one no_other no_record no_adr no_decision no_other_record no_other_adr
    no_other_decision none_yet nothing_yet none_so_far nothing_so_far
    to_be_decided to_be_defined to_be_determined
    aucun aucune ninguno ninguna nenhum nenhuma nessuno nessuna geen brak нет 无 無 なし 없음"""
)
"""What stands in place of a record where there is none."""

UNFILLED: Final = _all("link number title name id applicable optional blank empty any")
PLACEHOLDERS: Final = UNFILLED | _all(
    "a an the to of or if when leave other new newer adr adrs madr decision record document no n"
)
"""A text of these words alone, one of them of `UNFILLED`, tells what is to be written there."""

FRONT_PAGES: Final = _all("readme index") | {"_index"}
OTHER_PAGES: Final = _all(
    "toc contents table-of-contents sidebar summary log changelog contributing license"
) | {"_toc", "_toctree", "_sidebar", "_navbar", "code_of_conduct"}
LISTS: Final = _all("index log list overview register toc contents")
ABOUT_LISTS: Final = LISTS | _all(
    "a adr adrs all architecture architectural decision decisions of our record records the"
)
"""A name of several of these words alone, one of them for a list, is that of a list of records."""
TEMPLATES: Final = _all("template templates tmpl boilerplate skeleton")
EMPTY: Final = _all("empty blank sample")
ABOUT_TEMPLATES: Final = (
    TEMPLATES
    | EMPTY
    | _all(
        """a adr adrs architecture architectural bare decision decisions default doc full long madr
        md minimal new nygard record records short simple the title tool tools y statement"""
    )
)
"""A name of these words alone, one of them for a template, is that of a template."""
