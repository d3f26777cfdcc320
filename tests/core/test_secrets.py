"""Secrets: where values come from, and that they stay out of everything that is kept."""

from __future__ import annotations

import copy
import json
import logging
import pickle

import pytest
from inline_snapshot import snapshot

from datacoolie_core.errors import PreparationError
from datacoolie_core.secrets import Secret, resolve


def value_of(configure, secrets_ref, field="password", **resolvers):
    found = resolve(configure, secrets_ref, connection="crm", resolvers=resolvers)
    return found[field].reveal()


def refusal(configure, secrets_ref, **resolvers):
    with pytest.raises(PreparationError) as caught:
        resolve(configure, secrets_ref, connection="crm", resolvers=resolvers)
    return str(caught.value)


class TestSecret:
    def test_it_prints_stars_whatever_is_tried(self, caplog):
        secret = Secret("S3cr3t!")
        logging.getLogger("x").warning("%s %r", secret, {"password": secret})
        shown = [
            str(secret),
            repr(secret),
            f"{secret}",
            f"{secret:>20}",
            f"{secret}",
            caplog.text,
        ]
        assert all("S3cr3t!" not in text and "***" in text for text in shown)
        assert secret.reveal() == "S3cr3t!"

    def test_it_has_no_dict_to_dump(self):
        with pytest.raises(TypeError):
            vars(Secret("x"))
        with pytest.raises(TypeError):
            json.dumps(Secret("x"))

    def test_it_can_not_be_pickled(self):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match="can't be pickled"):
                pickle.dumps({"a": Secret("x")}, protocol)

    def test_it_neither_compares_nor_hashes(self):
        with pytest.raises(TypeError, match="can't be compared"):
            assert Secret("x") == Secret("x")
        with pytest.raises(TypeError, match="can't be compared"):
            assert Secret("x") != "x"
        with pytest.raises(TypeError, match="unhashable"):
            hash(Secret("x"))

    def test_copies_are_the_secret_itself(self):
        secret = Secret("x")
        assert copy.deepcopy({"a": [secret]})["a"][0] is secret
        assert copy.copy(secret) is secret


class TestResolve:
    def test_the_env_prefix_reads_its_argument_and_the_key(self, monkeypatch):
        monkeypatch.setenv("CRM_PASSWORD", "x")
        assert value_of({"password": "PASSWORD"}, {"env:CRM_": ["password"]}) == "x"

    @pytest.mark.parametrize("source", ["", "CRM_", "https://vault.example/"])
    def test_a_plain_or_unknown_source_reads_the_variable_source_and_key(self, source, monkeypatch):
        monkeypatch.setenv(f"{source}PASSWORD", "x")
        assert value_of({"password": "PASSWORD"}, {source: ("password",)}) == "x"

    def test_a_resolver_of_the_user_gets_argument_and_key(self):
        def vault(argument, key):
            return f"{argument}/{key}"

        assert (
            value_of({"password": "pw"}, {"vault:team/crm": ["password"]}, vault=vault)
            == "team/crm/pw"
        )

    def test_only_the_secret_fields_come_back(self, monkeypatch):
        monkeypatch.setenv("A", "1")
        found = resolve(
            {"host": "h", "password": "A"}, {"": ["password"]}, connection="crm", resolvers={}
        )
        assert list(found) == ["password"]

    def test_a_missing_variable_is_named_with_the_remedy(self, monkeypatch):
        """sec-missing-versus-blank-secret, unset."""
        monkeypatch.delenv("LAKE_ROOT", raising=False)
        assert refusal({"base_path": "LAKE_ROOT"}, {"env:": ["base_path"]}) == snapshot(
            "prepare, connection 'crm', configure.base_path: the environment variable LAKE_ROOT is not set. Set LAKE_ROOT."
        )

    def test_a_blank_variable_is_another_message(self, monkeypatch):
        """sec-missing-versus-blank-secret, set but blank."""
        monkeypatch.setenv("LAKE_ROOT", "")
        assert refusal({"base_path": "LAKE_ROOT"}, {"env:": ["base_path"]}) == snapshot(
            "prepare, connection 'crm', configure.base_path: the environment variable LAKE_ROOT is set, but blank. Set LAKE_ROOT."
        )

    def test_a_password_may_be_blank(self, monkeypatch):
        monkeypatch.setenv("PASSWORD", "")
        assert value_of({"password": "PASSWORD"}, {"env:": ["password"]}) == ""

    def test_an_unknown_prefix_is_told_about_resolvers(self):
        assert refusal({"password": "PW"}, {"vault:crm": ["password"]}) == snapshot(
            "prepare, connection 'crm', configure.password: the environment variable vault:crmPW is not set. Set vault:crmPW, or pass a resolver for 'vault'."
        )

    def test_a_field_without_a_key_is_refused(self):
        assert refusal({}, {"env:": ["password"]}) == snapshot(
            "prepare, connection 'crm', configure.password: secrets_ref names this field, but it holds no key. Write the name of the secret as its value."
        )

    def test_a_resolver_that_finds_nothing_is_told(self):
        text = refusal({"password": "pw"}, {"vault:crm": ["password"]}, vault=lambda *_: None)
        assert text == snapshot(
            "prepare, connection 'crm', configure.password: 'pw' of 'vault:crm' is not set. Add it to what 'vault' reads."
        )

    def test_what_a_failing_resolver_says_is_not_repeated(self):
        def vault(argument, key):
            raise ConnectionError("token hunter2 refused")

        text = refusal({"password": "pw"}, {"vault:crm": ["password"]}, vault=vault)
        assert "hunter2" not in text
        assert text == snapshot(
            "prepare, connection 'crm', configure.password: the secret resolver 'vault' failed for 'pw' (ConnectionError). Check that the resolver can reach its store."
        )
